"""Turn a question and units into the token ids that the model reads, and find each unit's last token.

One call of a tokenizer on 3,000,000 characters takes hundreds of megabytes, or
gigabytes if they are emoji. So a long text is tokenized in pieces, cut where a check
shows that the cut changes nothing. Only if `LONGEST_PIECE` characters have no such
place, the text is cut between any two tokens, and tokens near the cut may differ.

The published scanners read long documents in half-overlapping windows of whole units
(`window_ranges`).
"""

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from tokenizers import Encoding, Tokenizer

from spscanner_rag.text.escaping import first_line
from spscanner_rag.text.token_counts import CountTokens
from spscanner_rag.text.units import Unit, readable

EndRule = Literal["contained", "last_character"]

_PIECE_CHARACTERS = 32_768

LONGEST_PIECE = 49_152
"""Characters without a safe cut, such as one word of this length, after which a text
is cut anyway."""

_MARGIN_CHARACTERS = 64  # characters after a cut in which the tokens must agree
_SEARCHED_CHARACTERS = 1024  # characters before a piece's end where cuts are tried
_CHECKS = 16  # maximum number of cuts of each kind that are tried
# First choice: between two words, before a single space or line end. Second choice, for
# text without spaces: wherever words, symbols and white space meet.
_CUTS = (
    re.compile(r"(?<=\S)[ \n](?=\S)"),
    re.compile(r"(?<=\w)(?!\w)|(?<=[^\w\s])(?=\w)|(?<=\s)(?=\S)"),
)


def encode(tokenizer: Tokenizer, text: str) -> Encoding:
    """Encode without special tokens, lone surrogates as U+FFFD.

    ``ValueError`` if a damaged tokenizer fails.
    """
    try:
        return tokenizer.encode(readable(text), add_special_tokens=False)
    except BaseException as error:
        if not is_fault_of_tokenizers(error):
            raise
        raise ValueError(
            f"the tokenizer fails on a text of {len(text)} characters"
            f" ({first_line(error)}); use the tokenizer that belongs to the checkpoint,"
            " or download it again"
        ) from None


def is_fault_of_tokenizers(error: BaseException) -> bool:
    """True if the library raised the error: an ``Exception``, or a panic of its Rust code, which is not one."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


@dataclass(frozen=True)
class TokenizedText:
    """Everything but the question: units, and tokens with character offsets in the joined ``model_text``.

    Several tokens may share the offsets of one multi-byte character.
    """

    units: Sequence[Unit]
    input_ids: NDArray[np.int32]  # (tokens,)
    token_starts: NDArray[np.int32]  # (tokens,)
    token_ends: NDArray[np.int32]  # (tokens,)
    unit_ends: NDArray[
        np.int64
    ]  # (units,): the token that each unit's logit sits on, never decreasing

    @property
    def starts(self) -> NDArray[np.int64]:
        """Starts of the units in the caller's text: (units,)."""
        return np.fromiter(
            (unit.start for unit in self.units), np.int64, len(self.units)
        )

    @property
    def ends(self) -> NDArray[np.int64]:
        """Ends of the units, exclusive: (units,)."""
        return np.fromiter((unit.end for unit in self.units), np.int64, len(self.units))


def encode_question(
    tokenizer: Tokenizer, question: str
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    r"""Ids of ``question.strip() + "\n"`` without special tokens, and where they start and end: each (tokens,)."""
    _require_plain(tokenizer)
    encoding = encode(tokenizer, question.strip() + "\n")
    spans = np.array(encoding.offsets, np.int32).reshape(-1, 2)
    return np.array(encoding.ids, dtype=np.int32), spans[:, 0], spans[:, 1]


def tokenize_units(
    tokenizer: Tokenizer,
    units: Sequence[Unit],
    end_rule: EndRule,
    piece_characters: int = _PIECE_CHARACTERS,
    between_pieces: Callable[[], None] = lambda: None,
) -> TokenizedText:
    """Tokenize the units' joined ``model_text`` and find each unit's last token.

    ``between_pieces`` may raise.

    The ids and offsets are those of one call on the joined string without special
    tokens, but the string is tokenized in pieces (`tokenize_in_pieces`). In a text
    without a safe cut, such as a word of more than `LONGEST_PIECE` characters, they may
    differ near the cuts.

    ``end_rule`` gives a unit's last token. ``"contained"`` (published scanners): the
    last token that ends at or before the unit's end in the joined string, or the
    previous unit's if there is no later one. ``"last_character"`` (ours): the token
    that holds its last character that is not white space; two may share it.
    """
    _require_plain(tokenizer)
    text = "".join(unit.model_text for unit in units)
    # Arrays that grow in place, so that the tokens of a long text are never in memory
    # twice.
    ids, token_starts, token_ends = array("i"), array("i"), array("i")
    for number, (piece_ids, offsets) in enumerate(
        tokenize_in_pieces(tokenizer, text, piece_characters)
    ):
        if number:
            between_pieces()
        ids.frombytes(piece_ids.tobytes())
        token_starts.frombytes(offsets[:, 0].tobytes())
        token_ends.frombytes(offsets[:, 1].tobytes())
    input_ids, starts, ends = (
        np.frombuffer(each, np.int32) for each in (ids, token_starts, token_ends)
    )
    if units and not len(input_ids):
        raise ValueError(
            f"the tokenizer gives no tokens for a text of {len(text)} characters,"
            " expected at least one; use the tokenizer that belongs to the checkpoint"
        )
    return TokenizedText(
        units, input_ids, starts, ends, _unit_ends(units, starts, ends, end_rule)
    )


def token_counter(tokenizer: Tokenizer) -> CountTokens:
    """Return a function, which can be pickled, that counts the tokens of a text without special tokens."""
    return partial(_count_tokens, tokenizer)


def _count_tokens(tokenizer: Tokenizer, text: str) -> int:
    return len(encode(tokenizer, text).ids)


def _unit_ends(
    units: Sequence[Unit],
    starts: NDArray[np.int32],
    ends: NDArray[np.int32],
    end_rule: EndRule,
) -> NDArray[np.int64]:
    """Index of each unit's last token: (units,)."""
    lengths = np.fromiter(
        (len(unit.model_text) for unit in units), np.int64, len(units)
    )
    unit_stops = np.cumsum(lengths)
    if end_rule == "contained":
        found = (
            np.searchsorted(np.maximum.accumulate(ends), unit_stops, side="right") - 1
        )
    else:
        kept = np.fromiter(
            (len(unit.model_text.rstrip()) for unit in units), np.int64, len(units)
        )
        last_characters = (
            np.minimum(unit_stops - lengths + np.maximum(kept, 1), unit_stops) - 1
        )
        found = (
            np.searchsorted(
                np.maximum.accumulate(starts), last_characters, side="right"
            )
            - 1
        )
    return np.maximum.accumulate(np.maximum(found, 0)).astype(np.int64)


def _require_plain(tokenizer: Tokenizer) -> None:
    if tokenizer.truncation is not None or tokenizer.padding is not None:
        raise ValueError(
            "the tokenizer truncates or pads, expected neither; "
            "call its no_truncation() and no_padding() first"
        )


def tokenize_in_pieces(
    tokenizer: Tokenizer, text: str, piece_characters: int = _PIECE_CHARACTERS
) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
    """Yield the ids, (tokens,), and character offsets in ``text``, (tokens, 2), of each piece in turn.

    Lone surrogates become U+FFFD. A piece has ``piece_characters`` characters, or more
    until it can be cut, up to `LONGEST_PIECE`. A tokenizer that does not take words one
    by one, or always alike, gets the whole text at once.
    """
    longest_added = max(
        (len(added.content) for added in tokenizer.get_added_tokens_decoder().values()),
        default=0,
    )
    margin = max(_MARGIN_CHARACTERS, 2 * longest_added)
    longest = max(LONGEST_PIECE, piece_characters)
    # whether words are tokenized one by one, and always in the same way (without BPE
    # dropout)
    cuttable = tokenizer.pre_tokenizer is not None and not getattr(
        tokenizer.model, "dropout", None
    )
    start, length = 0, piece_characters if cuttable else len(text)
    first_shift = np.zeros(2, np.int32)
    while start < len(text):
        stop = min(len(text), start + length + margin)
        encoding = encode(tokenizer, text[start:stop])
        tokens, offsets = (
            np.array(encoding.ids, dtype=np.int32),
            _offsets(encoding) + np.int32(start),
        )
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
            first_shift = np.zeros(
                2, np.int32
            )  # the length stays, since such a text mostly continues so


def _candidates(text: str, start: int, stop: int) -> Iterator[int]:
    """Yield a few positions shortly before ``stop`` between words.

    The search is bounded for any text.
    """
    low = max((start + stop + 1) // 2, stop - _SEARCHED_CHARACTERS, start + 1)
    for pattern in _CUTS:
        # Search two characters past the last position: the patterns treat the end of
        # the search as a word's end.
        places = [
            match.start()
            for match in pattern.finditer(text, low, stop + 2)
            if match.start() <= stop
        ]
        yield from reversed(places[-_CHECKS:])


def _tokens_before(
    tokenizer: Tokenizer,
    encoding: Encoding,
    offsets: NDArray[np.int32],
    rest: str,
    place: int,
) -> tuple[int, NDArray[np.int32]] | None:
    """Number of tokens before ``place``, and what to add to the next one's offsets.

    None if no cut is safe.

    ``encoding`` begins between two words; ``rest`` is its text after ``place``. Words
    (the pre-tokenizer's pieces and the added tokens) are tokenized one by one. So a cut
    is safe between two words, if the rest alone gives the same tokens with the same
    offsets. Only the first token's offsets may differ, since some tokenizers treat
    white space before the first word of a text differently; the encoding must extend
    past that word.
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
    """The number of tokens before the last cut, and its place, by ``offsets``, (tokens, 2); all if there is none.

    The last few characters are left to the next piece, unless that would be more than
    half of this one.
    """
    ends, nexts = offsets[:-1, 1], offsets[1:, 0]
    between = (
        (ends <= nexts)
        & (ends > (start + stop) // 2)
        & (ends <= stop - _MARGIN_CHARACTERS)
    )
    if not between.any():
        return len(offsets), stop
    last = int(np.flatnonzero(between)[-1])
    return last + 1, int(ends[last])


def _offsets(encoding: Encoding) -> NDArray[np.int32]:
    """Character offsets: (tokens, 2)."""
    flat = np.fromiter(
        chain.from_iterable(encoding.offsets), np.int32, 2 * len(encoding.ids)
    )
    return flat.reshape(-1, 2)


def window_ranges(
    unit_ends: NDArray[np.int64], window_tokens: int
) -> list[tuple[int, int]]:
    """First and last unit, both inclusive, of every window.

    ``unit_ends``, (units,), are the units' last tokens.

    A window starts at a unit and holds the whole units that end less than
    ``window_tokens`` after its first token. The next window starts at the last unit
    that begins in its first half. The last window is moved back so that it is full. A
    unit longer than ``window_tokens`` gets a window of its own. Source:
    ``sliding_window`` in ``evaluate.py`` of
    https://github.com/MambaRetriever/MambaRetriever, commit 54c3463.
    """
    if not len(unit_ends):
        return []
    unit_starts = np.concatenate(([0], unit_ends[:-1] + 1))
    final = len(unit_ends) - 1
    ranges = []
    first = unread = 0
    while True:
        start = int(unit_starts[first])
        last = max(int(np.searchsorted(unit_ends, start + window_tokens)) - 1, 0)
        if unit_ends[last] <= start:
            last += 1
        if last >= final:
            filled = int(
                np.searchsorted(unit_starts, int(unit_ends[final]) - window_tokens)
            )
            ranges.append((min(filled, unread, final), final))
            return ranges
        last = max(last, first)
        ranges.append((first, last))
        unread = last + 1
        # The original lacks these guards: always advance, and skip no unit next to one
        # longer than a window.
        following = int(np.searchsorted(unit_starts, start + window_tokens // 2)) - 1
        first = min(max(following, first + 1), unread)


def average_logits(
    ranges: Sequence[tuple[int, int]], window_logits: Iterable[ArrayLike], n_units: int
) -> NDArray[np.float32]:
    """Mean of each unit's logits, (units in it,) of each window, over the windows that contain it: (n_units,)."""
    total = np.zeros(n_units, np.float64)
    count = np.zeros(n_units, np.int64)
    for (first, last), logits in zip(ranges, window_logits, strict=True):
        total[first : last + 1] += np.asarray(logits, np.float64)
        count[first : last + 1] += 1
    return (total / np.maximum(count, 1)).astype(np.float32)
