"""Turn a question and units into the token ids that the model reads, and find each unit's last token."""

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from spscanner_rag.text.encode import encode
from spscanner_rag.text.token_counts import CountTokens
from spscanner_rag.text.tokenize_in_pieces import tokenize_in_pieces
from spscanner_rag.text.units import Unit

EndRule = Literal["contained", "last_character"]

_PIECE_CHARACTERS = 32_768


@dataclass(frozen=True)
class TokenizedText:
    """A text cut into units and tokenized: everything that does not depend on the question.

    Tokens have character offsets in the units' joined ``model_text``. Several tokens may share the offsets of one
    multi-byte character.
    """

    units: Sequence[Unit]
    input_ids: NDArray[np.int32]  # (tokens,)
    token_starts: NDArray[np.int32]  # (tokens,)
    token_ends: NDArray[np.int32]  # (tokens,)
    unit_ends: NDArray[np.int64]  # (units,): the token that each unit's logit sits on, never decreasing

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where units start in the caller's text: (units,)."""
        return np.fromiter((unit.start for unit in self.units), np.int64, len(self.units))

    @property
    def ends(self) -> NDArray[np.int64]:
        """Where units end, exclusive: (units,)."""
        return np.fromiter((unit.end for unit in self.units), np.int64, len(self.units))


def tokenize_question(tokenizer: Tokenizer, question: str) -> NDArray[np.int32]:
    r"""Token ids of ``question.strip() + "\n"``, without special tokens: (tokens,)."""
    return encode_question(tokenizer, question)[0]


def encode_question(
    tokenizer: Tokenizer, question: str
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Token ids as `tokenize_question`, and where tokens start and end in ``question.strip()``: each (tokens,)."""
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

    The ids and offsets are those of one call on the joined string without special tokens, but the string is
    tokenized in pieces of ``piece_characters``, or more where no cut is safe (`tokenize_in_pieces`). In a text
    without a safe cut, such as a word of more than `LONGEST_PIECE` characters, they may differ near the cuts.
    ``between_pieces`` is called between two pieces and may raise.

    ``end_rule`` says where a unit's logit sits. ``"contained"`` (published scanners): the last token that ends at
    or before the unit's end in the joined string, or the previous unit's if there is no later one.
    ``"last_character"`` (ours): the token that holds the unit's last character that is not white space. Two units
    may share a token.

    Raises ``ValueError`` if an argument is invalid, the tokenizer truncates or pads, or it gives no tokens.
    """
    _require_plain(tokenizer)
    if piece_characters < 1:
        raise ValueError(f"piece_characters is {piece_characters}, expected at least 1")
    if end_rule not in ("contained", "last_character"):
        raise ValueError(f'end_rule is {end_rule!r}, expected "contained" or "last_character"')
    text = "".join(unit.model_text for unit in units)
    # Arrays that grow in place, so that the tokens of a long text are never in memory twice.
    ids, token_starts, token_ends = array("i"), array("i"), array("i")
    for number, (piece_ids, offsets) in enumerate(tokenize_in_pieces(tokenizer, text, piece_characters)):
        if number:
            between_pieces()
        ids.frombytes(piece_ids.tobytes())
        token_starts.frombytes(offsets[:, 0].tobytes())
        token_ends.frombytes(offsets[:, 1].tobytes())
    input_ids, starts, ends = (np.frombuffer(each, np.int32) for each in (ids, token_starts, token_ends))
    if units and not len(input_ids):
        raise ValueError(
            f"the tokenizer gives no tokens for a text of {len(text)} characters, expected at least one; "
            "use the tokenizer that belongs to the checkpoint"
        )
    return TokenizedText(units, input_ids, starts, ends, _unit_ends(units, starts, ends, end_rule))


def token_counter(tokenizer: Tokenizer) -> CountTokens:
    """Return a function, which can be pickled, that counts the tokens of a text without special tokens."""
    return partial(_count_tokens, tokenizer)


def _count_tokens(tokenizer: Tokenizer, text: str) -> int:
    return len(encode(tokenizer, text).ids)


def _unit_ends(
    units: Sequence[Unit], starts: NDArray[np.int32], ends: NDArray[np.int32], end_rule: EndRule
) -> NDArray[np.int64]:
    """Index of each unit's last token: (units,)."""
    lengths = np.fromiter((len(unit.model_text) for unit in units), np.int64, len(units))
    unit_stops = np.cumsum(lengths)
    if end_rule == "contained":
        found = np.searchsorted(_rising(ends), unit_stops, side="right") - 1
    else:
        kept = np.fromiter((len(unit.model_text.rstrip()) for unit in units), np.int64, len(units))
        last_characters = np.minimum(unit_stops - lengths + np.maximum(kept, 1), unit_stops) - 1
        found = np.searchsorted(_rising(starts), last_characters, side="right") - 1
    return np.maximum.accumulate(np.maximum(found, 0)).astype(np.int64)


def _rising(positions: NDArray[np.int32]) -> NDArray[np.int32]:
    """The largest of each position and those before it; the same array if they never decrease."""
    return positions if (positions[1:] >= positions[:-1]).all() else np.maximum.accumulate(positions)


def _require_plain(tokenizer: Tokenizer) -> None:
    if tokenizer.truncation is not None or tokenizer.padding is not None:
        raise ValueError(
            "the tokenizer truncates or pads, expected neither; "
            "call its no_truncation() and no_padding() first"
        )
