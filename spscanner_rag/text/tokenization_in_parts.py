"""Tokenize a long text in parts, with the same tokens as in one call.

One call of a tokenizer on 3,000,000 characters takes hundreds of megabytes, or
gigabytes if they are emoji. So a long text is tokenized in parts, cut where a check
shows that the cut changes nothing. Only if `LONGEST_PART` characters have no such
place, the text is cut between any two tokens, and tokens near the cut may differ.
"""

import re
from collections.abc import Iterator
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from spscanner_rag.text.encoding import encode

PART_CHARACTERS = 32_768

LONGEST_PART = 49_152
"""Characters without a safe cut, such as one word of this length, after which a text
is cut anyway."""

_MARGIN_CHARACTERS = 64  # characters after a cut in which the tokens must agree
_SEARCHED_CHARACTERS = 1024  # characters before a part's end where cuts are tried
_CHECKS = 16  # maximum number of cuts of each kind that are tried
# First choice: between two words, before a single space or line end. Second choice, for
# text without spaces: wherever words, symbols and white space meet.
_CUTS = (
    re.compile(r"(?<=\S)[ \n](?=\S)"),
    re.compile(r"(?<=\w)(?!\w)|(?<=[^\w\s])(?=\w)|(?<=\s)(?=\S)"),
)


def tokenize_in_parts(
    tokenizer: Tokenizer, text: str, part_characters: int = PART_CHARACTERS
) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
    """Yield the token ids and character offsets in ``text`` of each part in turn.

    The ids are (tokens,), the offsets (tokens, 2). Lone surrogates become U+FFFD. A
    part has ``part_characters`` characters, or more until it can be cut, up to
    `LONGEST_PART`. A tokenizer that does not take words one by one, or always alike,
    gets the whole text at once.
    """
    margin = max(_MARGIN_CHARACTERS, 2 * _longest_added_token(tokenizer))
    longest = max(LONGEST_PART, part_characters)
    first_length = part_characters if _can_be_cut(tokenizer) else len(text)
    start = 0
    length = first_length
    no_shift = np.zeros(2, np.int32)
    first_shift = no_shift
    while start < len(text):
        stop = min(len(text), start + length + margin)
        encoding = encode(tokenizer, text[start:stop])
        ids = np.array(encoding.ids, dtype=np.int32)
        offsets = _offsets(encoding) + np.int32(start)
        offsets[:1] += first_shift
        if stop == len(text):
            yield ids, offsets
            return
        cut = _safe_cut(tokenizer, encoding, offsets, text, start, start + length, stop)
        if cut is not None:
            n_tokens, start, first_shift = cut
            length = part_characters
        elif length < longest:
            length = min(2 * length, longest)
            continue
        else:
            # The length stays, since such a text mostly continues so.
            n_tokens, start = _any_cut(offsets, start, stop)
            first_shift = no_shift
        yield ids[:n_tokens], offsets[:n_tokens]


def first_tokens(
    tokenizer: Tokenizer,
    text: str,
    tokens: int,
    part_characters: int = PART_CHARACTERS,
) -> str:
    """Return the beginning of a text, up to the end of the given number of tokens.

    A text with fewer tokens is returned as it is. No more is tokenized than that.
    """
    for ids, offsets in tokenize_in_parts(tokenizer, text, part_characters):
        if tokens <= len(ids):
            return text[: offsets[tokens - 1, 1]]
        tokens -= len(ids)
    return text


def _can_be_cut(tokenizer: Tokenizer) -> bool:
    """True if words are tokenized one by one, and always alike (no BPE dropout)."""
    if tokenizer.pre_tokenizer is None:
        return False
    return not getattr(tokenizer.model, "dropout", None)


def _longest_added_token(tokenizer: Tokenizer) -> int:
    added = tokenizer.get_added_tokens_decoder().values()
    return max((len(token.content) for token in added), default=0)


def _safe_cut(
    tokenizer: Tokenizer,
    encoding: Encoding,
    offsets: NDArray[np.int32],
    text: str,
    start: int,
    wanted: int,
    stop: int,
) -> tuple[int, int, NDArray[np.int32]] | None:
    """A cut of ``text[start:stop]`` that changes no token, if one is at hand.

    Returns the number of tokens before it, its position, at or shortly before
    ``wanted``, and what to add to the offsets of the token after it.
    """
    for position in _candidates(text, start, wanted):
        after = text[position:stop]
        tokens_before = _tokens_before(tokenizer, encoding, offsets, after, position)
        if tokens_before is not None:
            n_tokens, shift = tokens_before
            return n_tokens, position, shift
    return None


def _candidates(text: str, start: int, stop: int) -> Iterator[int]:
    """Yield a few positions shortly before ``stop`` between words.

    The search is bounded for any text.
    """
    low = max((start + stop + 1) // 2, stop - _SEARCHED_CHARACTERS, start + 1)
    for pattern in _CUTS:
        # Search two characters past the last position: the patterns treat the end of
        # the search as a word's end.
        matches = pattern.finditer(text, low, stop + 2)
        positions = [match.start() for match in matches if match.start() <= stop]
        yield from reversed(positions[-_CHECKS:])


def _tokens_before(
    tokenizer: Tokenizer,
    encoding: Encoding,
    offsets: NDArray[np.int32],
    text_after: str,
    position: int,
) -> tuple[int, NDArray[np.int32]] | None:
    """Number of tokens before a cut, and what to add to the next one's offsets.

    None if the cut is not safe. ``encoding`` begins between two words; ``text_after``
    is its text after ``position``. Words (what the pre-tokenizer cuts, and the added
    tokens) are tokenized one by one. So a cut is safe between two words, if the text
    after it alone gives the same tokens with the same offsets. Only the first token's
    offsets may differ, since some tokenizers treat white space before the first word of
    a text differently; the encoding must extend past that word.
    """
    after = encode(tokenizer, text_after)
    count = len(encoding.ids) - len(after.ids)
    if not 0 < count < len(encoding.ids) or encoding.ids[count:] != after.ids:
        return None
    words = encoding.word_ids
    if words[count - 1] == words[count] or offsets[count - 1, 1] > position:
        return None
    shifts = offsets[count:] - (_offsets(after) + np.int32(position))
    if shifts[1:].any() or (shifts[0].any() and words[count] == words[-1]):
        return None
    return count, shifts[0]


def _any_cut(offsets: NDArray[np.int32], start: int, stop: int) -> tuple[int, int]:
    """The number of tokens before the last cut by ``offsets``, and its position.

    ``offsets`` are (tokens, 2). Without a cut it is all of them. The last few
    characters are left to the next part, unless that would be more than half of this
    one.
    """
    ends = offsets[:-1, 1]
    next_starts = offsets[1:, 0]
    early_enough = ends <= stop - _MARGIN_CHARACTERS
    late_enough = ends > (start + stop) // 2
    cuts = np.flatnonzero((ends <= next_starts) & late_enough & early_enough)
    if not len(cuts):
        return len(offsets), stop
    last = int(cuts[-1])
    return last + 1, int(ends[last])


def _offsets(encoding: Encoding) -> NDArray[np.int32]:
    """Character offsets: (tokens, 2)."""
    flat = chain.from_iterable(encoding.offsets)
    return np.fromiter(flat, np.int32, 2 * len(encoding.ids)).reshape(-1, 2)
