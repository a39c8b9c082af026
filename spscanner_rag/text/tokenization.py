"""Turn a question and units into token ids, and find the last token of each unit.

The logit of a unit sits on its last token, as in the paper: the linear head reads the
hidden state at the end of each sentence. Long texts are tokenized in parts
(`text.tokenization_in_parts`), with the same ids as in one call.
"""

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from spscanner_rag.text.encoding import encode, require_plain
from spscanner_rag.text.tokenization_in_parts import PART_CHARACTERS, tokenize_in_parts
from spscanner_rag.text.units import Unit

EndRule = Literal["contained", "last_character"]


@dataclass(frozen=True)
class TokenizedText:
    """A text as units, and as tokens with offsets in the joined ``model_text``.

    The offsets are in characters. Several tokens may share the offsets of one
    multi-byte character.
    """

    units: Sequence[Unit]
    input_ids: NDArray[np.int32]  # (tokens,)
    token_starts: NDArray[np.int32]  # (tokens,)
    token_ends: NDArray[np.int32]  # (tokens,)
    # (units,): the token that each unit's logit sits on, never decreasing
    unit_ends: NDArray[np.int64]

    @property
    def starts(self) -> NDArray[np.int64]:
        """Starts of the units in the caller's text: (units,)."""
        starts = (unit.start for unit in self.units)
        return np.fromiter(starts, np.int64, len(self.units))

    @property
    def ends(self) -> NDArray[np.int64]:
        """Ends of the units, exclusive: (units,)."""
        ends = (unit.end for unit in self.units)
        return np.fromiter(ends, np.int64, len(self.units))


def encode_question(
    tokenizer: Tokenizer, question: str
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    r"""Token ids of ``question.strip() + "\n"``, and where the tokens start and end.

    There are no special tokens. Each array is (tokens,).
    """
    require_plain(tokenizer)
    encoding = encode(tokenizer, question.strip() + "\n")
    ids = np.array(encoding.ids, dtype=np.int32)
    spans = np.array(encoding.offsets, np.int32).reshape(-1, 2)
    return ids, spans[:, 0], spans[:, 1]


def tokenize_units(
    tokenizer: Tokenizer,
    units: Sequence[Unit],
    end_rule: EndRule,
    part_characters: int = PART_CHARACTERS,
    between_parts: Callable[[], None] = lambda: None,
) -> TokenizedText:
    """Tokenize the units' joined ``model_text`` and find each unit's last token.

    The ids and offsets are those of one call on the joined string without special
    tokens, but the string is tokenized in parts (`tokenize_in_parts`). In a text
    without a safe cut, such as a word of more than
    `text.tokenization_in_parts.LONGEST_PART` characters, they may differ near the cuts.
    ``between_parts`` is called between them, and may raise.

    ``end_rule`` gives a unit's last token. ``"contained"`` (published scanners): the
    last token that ends at or before the unit's end in the joined string, or the
    previous unit's if there is no later one. ``"last_character"`` (ours): the token
    that holds its last character that is not white space; two may share it.

    Examples
    --------
    >>> from tokenizers import Tokenizer, models, pre_tokenizers
    >>> words = {"Ships": 0, "leave": 1, "Nobody": 2, "waits": 3, ".": 4}
    >>> tokenizer = Tokenizer(models.WordLevel(words, unk_token="."))
    >>> tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    >>> units = [Unit(0, 12, "Ships leave. "), Unit(13, 26, "Nobody waits.")]
    >>> text = tokenize_units(tokenizer, units, "last_character")
    >>> text.input_ids.tolist(), text.unit_ends.tolist()
    ([0, 1, 4, 2, 3, 4], [2, 5])
    """
    require_plain(tokenizer)
    text = "".join(unit.model_text for unit in units)
    # Arrays that grow in place, so that the tokens of a long text are never in memory
    # twice.
    ids = array("i")
    starts = array("i")
    ends = array("i")
    parts = tokenize_in_parts(tokenizer, text, part_characters)
    for number, (part_ids, offsets) in enumerate(parts):
        if number:
            between_parts()
        ids.frombytes(part_ids.tobytes())
        starts.frombytes(offsets[:, 0].tobytes())
        ends.frombytes(offsets[:, 1].tobytes())
    if units and not ids:
        raise ValueError(
            f"the tokenizer gives no tokens for a text of {len(text)} characters,"
            " expected at least one; use the tokenizer that belongs to the checkpoint"
        )
    token_starts = np.frombuffer(starts, np.int32)
    token_ends = np.frombuffer(ends, np.int32)
    if end_rule == "contained":
        unit_ends = _last_contained_tokens(units, token_ends)
    else:
        unit_ends = _tokens_of_last_characters(units, token_starts)
    input_ids = np.frombuffer(ids, np.int32)
    return TokenizedText(units, input_ids, token_starts, token_ends, unit_ends)


def _last_contained_tokens(
    units: Sequence[Unit], token_ends: NDArray[np.int32]
) -> NDArray[np.int64]:
    """The last token that ends at or before each unit's end: (units,)."""
    unit_stops = np.cumsum(_model_text_lengths(units))
    ends = np.maximum.accumulate(token_ends)
    return _never_decreasing(np.searchsorted(ends, unit_stops, side="right") - 1)


def _tokens_of_last_characters(
    units: Sequence[Unit], token_starts: NDArray[np.int32]
) -> NDArray[np.int64]:
    """The token that holds each unit's last character not white space: (units,)."""
    lengths = _model_text_lengths(units)
    trimmed = (len(unit.model_text.rstrip()) for unit in units)
    trimmed_lengths = np.fromiter(trimmed, np.int64, len(units))
    unit_stops = np.cumsum(lengths)
    trimmed_stops = unit_stops - lengths + np.maximum(trimmed_lengths, 1)
    last_characters = np.minimum(trimmed_stops, unit_stops) - 1
    starts = np.maximum.accumulate(token_starts)
    return _never_decreasing(np.searchsorted(starts, last_characters, side="right") - 1)


def _model_text_lengths(units: Sequence[Unit]) -> NDArray[np.int64]:
    lengths = (len(unit.model_text) for unit in units)
    return np.fromiter(lengths, np.int64, len(units))


def _never_decreasing(tokens: NDArray[np.signedinteger]) -> NDArray[np.int64]:
    return np.maximum.accumulate(np.maximum(tokens, 0)).astype(np.int64)
