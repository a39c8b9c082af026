"""Tokenize a long string piece by piece, with the ids of the whole.

One call of a tokenizer on 3,000,000 characters costs hundreds of megabytes. The pieces are cut only where a check
shows that ids and offsets stay as they are.
"""

import re
from collections.abc import Iterator
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from spscanner_rag.text.units import readable

# For how many characters behind a cut the tokens must agree, in how many before a piece's end cuts are tried, and
# how many cuts of each kind.
_MARGIN_CHARACTERS = 64
_SEARCHED_CHARACTERS = 1024
_CHECKS = 16
# Cuts between two words, before a single space or line end; then wherever words, symbols and white
# space meet (text without spaces).
_CUTS = (re.compile(r"(?<=\S)[ \n](?=\S)"), re.compile(r"(?<=\w)(?!\w)|(?<=[^\w\s])(?=\w)|(?<=\s)(?=\S)"))


def tokenize_in_pieces(
    tokenizer: Tokenizer, text: str, piece_characters: int
) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
    """Tokenize ``text`` piece by piece, without special tokens; lone surrogates become U+FFFD.

    Parameters
    ----------
    tokenizer : Tokenizer
        With truncation and padding off.
    text : str
    piece_characters : int
        Characters per piece. A piece grows until it can be cut, up to the whole.

    Yields
    ------
    ids : (tokens,)
    offsets : (tokens, 2)
        Start and end of the tokens in ``text``, in characters.
    """
    longest_added = max(
        (len(added.content) for added in tokenizer.get_added_tokens_decoder().values()), default=0
    )
    margin = max(_MARGIN_CHARACTERS, 2 * longest_added)
    start, length = 0, piece_characters if _cuttable(tokenizer) else len(text)
    first_shift = np.zeros(2, np.int32)
    while start < len(text):
        stop = min(len(text), start + length + margin)
        encoding = tokenizer.encode(readable(text[start:stop]), add_special_tokens=False)
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
            length *= 2


def _candidates(text: str, start: int, stop: int) -> Iterator[int]:
    """A few places shortly before ``stop`` where words may part; the search is bounded, whatever the text."""
    low = max((start + stop + 1) // 2, stop - _SEARCHED_CHARACTERS, start + 1)
    for pattern in _CUTS:
        # Two characters beyond the last place: the patterns take the end of the search for the end of a word.
        places = [match.start() for match in pattern.finditer(text, low, stop + 2) if match.start() <= stop]
        yield from reversed(places[-_CHECKS:])


def _tokens_before(
    tokenizer: Tokenizer, encoding: Encoding, offsets: NDArray[np.int32], rest: str, place: int
) -> tuple[int, NDArray[np.int32]] | None:
    """Number of tokens before ``place``, and what to add to the next one's offsets; None if no cut is safe.

    ``encoding`` starts between two words and reaches beyond ``place``; ``rest`` is its text behind ``place``.
    Words (the pre-tokenizer's pieces and the added tokens) are tokenized one by one. So the cut is safe if it is
    between two words and the rest alone becomes the same tokens, at the same places. Only the first may be placed
    differently, as some tokenizers treat the white space before the first word of a text differently. The
    encoding must then reach beyond that word, so that the token is final.
    """
    after = tokenizer.encode(readable(rest), add_special_tokens=False)
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


def _cuttable(tokenizer: Tokenizer) -> bool:
    """Whether words are tokenized one by one, and always alike."""
    return tokenizer.pre_tokenizer is not None and not getattr(tokenizer.model, "dropout", None)


def _offsets(encoding: Encoding) -> NDArray[np.int32]:
    """Character offsets: (tokens, 2)."""
    flat = np.fromiter(chain.from_iterable(encoding.offsets), np.int32, 2 * len(encoding.ids))
    return flat.reshape(-1, 2)
