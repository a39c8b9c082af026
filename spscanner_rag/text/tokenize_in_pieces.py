"""Tokenize a long string piece by piece, with the same ids and offsets as in one call.

One call of a tokenizer on 3,000,000 characters takes hundreds of megabytes, or gigabytes if they are emoji. A text
is cut where a check shows that the cut changes nothing. Only where `LONGEST_PIECE` characters have no such place,
it is cut between any two tokens, and the tokens near the cut may be others than in one call.
"""

import re
from collections.abc import Iterator
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from spscanner_rag.text.encode import encode

LONGEST_PIECE = 49_152
"""Characters without a safe cut, such as one word of this length, after which a text is cut anyway."""

_MARGIN_CHARACTERS = 64  # after a cut, in which the tokens must agree
_SEARCHED_CHARACTERS = 1024  # before a piece's end, where cuts are tried
_CHECKS = 16  # cuts of each kind that are tried
# First choice: between two words, before a single space or line end. Second choice, for text without spaces:
# wherever words, symbols and white space meet.
_CUTS = (re.compile(r"(?<=\S)[ \n](?=\S)"), re.compile(r"(?<=\w)(?!\w)|(?<=[^\w\s])(?=\w)|(?<=\s)(?=\S)"))


def tokenize_in_pieces(
    tokenizer: Tokenizer, text: str, piece_characters: int
) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
    """Yield the ids, (tokens,), and character offsets in ``text``, (tokens, 2), of one piece after the other.

    No special tokens are added; lone surrogates become U+FFFD. The tokenizer must not truncate or pad. A piece has
    ``piece_characters`` characters, or more until it can be cut, up to `LONGEST_PIECE`. A tokenizer that does not
    take words one by one, or not always in the same way, gets the whole text as one piece.
    """
    longest_added = max(
        (len(added.content) for added in tokenizer.get_added_tokens_decoder().values()), default=0
    )
    margin = max(_MARGIN_CHARACTERS, 2 * longest_added)
    longest = max(LONGEST_PIECE, piece_characters)
    start, length = 0, piece_characters if _cuttable(tokenizer) else len(text)
    first_shift = np.zeros(2, np.int32)
    while start < len(text):
        stop = min(len(text), start + length + margin)
        encoding = encode(tokenizer, text[start:stop])
        tokens, offsets = np.array(encoding.ids, dtype=np.int32), _offsets(encoding) + np.int32(start)
        offsets[:1] += first_shift
        if stop == len(text):
            yield tokens, offsets
            return
        for place in _candidates(text, start, start + length):
            cut = _tokens_before(tokenizer, encoding, offsets, text[place:stop], place)
            if cut is not None:
                count, first_shift = cut
                yield tokens[:count], offsets[:count]
                start, length = place, piece_characters
                break
        else:
            if length < longest:
                length = min(2 * length, longest)
                continue
            count, start = _any_cut(offsets, start, stop)
            yield tokens[:count], offsets[:count]
            first_shift = np.zeros(2, np.int32)  # the length stays: such a text mostly goes on like this


def _candidates(text: str, start: int, stop: int) -> Iterator[int]:
    """Yield a few positions shortly before ``stop`` between words. The search is bounded for any text."""
    low = max((start + stop + 1) // 2, stop - _SEARCHED_CHARACTERS, start + 1)
    for pattern in _CUTS:
        # Search two characters past the last position: the patterns treat the end of the search as a word's end.
        places = [match.start() for match in pattern.finditer(text, low, stop + 2) if match.start() <= stop]
        yield from reversed(places[-_CHECKS:])


def _tokens_before(
    tokenizer: Tokenizer, encoding: Encoding, offsets: NDArray[np.int32], rest: str, place: int
) -> tuple[int, NDArray[np.int32]] | None:
    """Number of tokens before ``place``, and what to add to the next one's offsets; None if no cut is safe.

    ``encoding`` starts between two words and reaches beyond ``place``; ``rest`` is its text after ``place``. Words
    (the pre-tokenizer's pieces and the added tokens) are tokenized one by one. So the cut is safe if it is between
    two words and the rest alone gives the same tokens with the same offsets. Only the first token's offsets may
    differ, since some tokenizers treat white space before the first word of a text differently. The encoding must
    then extend past that word, so that the token is final.
    """
    after = encode(tokenizer, rest)
    count = len(encoding.ids) - len(after.ids)
    if not 0 < count < len(encoding.ids) or encoding.ids[count:] != after.ids:
        return None
    words = encoding.word_ids
    if words[count - 1] == words[count] or offsets[count - 1, 1] > place:
        return None
    shifts = offsets[count:] - (_offsets(after) + np.int32(place))
    if shifts[1:].any() or (shifts[0].any() and words[count] == words[-1]):
        return None
    return count, shifts[0]


def _any_cut(offsets: NDArray[np.int32], start: int, stop: int) -> tuple[int, int]:
    """Number of tokens before the last place between two of them, and that place; all if there is none.

    ``offsets``, (tokens, 2), are those of the characters ``start`` to ``stop``. The tokens of the last few
    characters are left to the next piece, unless that would be more than half of this one.
    """
    ends, nexts = offsets[:-1, 1], offsets[1:, 0]
    between = (ends <= nexts) & (ends > (start + stop) // 2) & (ends <= stop - _MARGIN_CHARACTERS)
    if not between.any():
        return len(offsets), stop
    last = int(np.flatnonzero(between)[-1])
    return last + 1, int(ends[last])


def _cuttable(tokenizer: Tokenizer) -> bool:
    """Whether words are tokenized one by one, and always in the same way (without BPE dropout)."""
    return tokenizer.pre_tokenizer is not None and not getattr(tokenizer.model, "dropout", None)


def _offsets(encoding: Encoding) -> NDArray[np.int32]:
    """Character offsets: (tokens, 2)."""
    flat = np.fromiter(chain.from_iterable(encoding.offsets), np.int32, 2 * len(encoding.ids))
    return flat.reshape(-1, 2)
