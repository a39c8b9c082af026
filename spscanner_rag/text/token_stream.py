"""Question and units to the token ids that the model reads, and each unit's last token."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from spscanner_rag.text.tokenize_in_pieces import tokenize_in_pieces
from spscanner_rag.text.units import Unit, readable

EndRule = Literal["contained", "last_character"]

_PIECE_CHARACTERS = 32_768
_NONE = np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True)
class DocumentTokens:
    """A tokenized document.

    Parameters
    ----------
    input_ids : int32 array, shape (tokens,)
        Token ids of the units' joined ``model_text``.
    starts, ends : int32 arrays, shape (tokens,)
        Character offsets of the tokens in the joined string. The tokens of one character that takes
        several bytes may share offsets.
    unit_ends : int64 array, shape (units,)
        Index of the token that a unit's logit sits on; never decreasing.
    """

    input_ids: NDArray[np.int32]
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    unit_ends: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TokenStream:
    """What the model reads in one pass.

    Parameters
    ----------
    input_ids : int32 array, shape (tokens,)
        The question's tokens, then the document's, with the question repeated where asked.
    unit_ends : int64 array, shape (units,)
        Positions in ``input_ids`` of the units' logits.
    match_classes : uint8 array, shape (tokens,), or None
        Lexical match class of each token.
    """

    input_ids: NDArray[np.int32]
    unit_ends: NDArray[np.int64]
    match_classes: NDArray[np.uint8] | None = None


def tokenize_question(tokenizer: Tokenizer, question: str) -> NDArray[np.int32]:
    r"""Token ids of ``question.strip() + "\n"``, without special tokens.

    Parameters
    ----------
    tokenizer : tokenizers.Tokenizer
        With truncation and padding off.
    question : str
        Lone surrogates are read as U+FFFD.

    Returns
    -------
    int32 array, shape (tokens,)
    """
    _require_plain(tokenizer)
    encoding = tokenizer.encode(readable(question.strip() + "\n"), add_special_tokens=False)
    return np.array(encoding.ids, dtype=np.int32)


def tokenize_units(
    tokenizer: Tokenizer,
    units: Sequence[Unit],
    end_rule: EndRule,
    piece_characters: int = _PIECE_CHARACTERS,
) -> DocumentTokens:
    """Tokenize the units' joined ``model_text`` and find each unit's last token.

    The ids and offsets are those of one call on the joined string without special tokens, while the
    memory is that of a piece. Where no cut can be shown to be safe a piece grows, up to the whole.

    Parameters
    ----------
    tokenizer : tokenizers.Tokenizer
        With truncation and padding off.
    units : sequence of Unit
        The document, in order.
    end_rule : {"contained", "last_character"}
        Where a unit's logit sits. ``"contained"`` (published scanners): the last token that ends at
        or before the unit's end in the joined string, or the previous unit's if there is no later
        one. ``"last_character"`` (ours): the token that holds the unit's last character that is not
        white space. Two units may share a token.
    piece_characters : int, default 32768
        Characters per piece, as far as safe cuts allow.

    Returns
    -------
    DocumentTokens

    Raises
    ------
    ValueError
        If the tokenizer truncates or pads, gives no tokens at all for the units, or
        ``piece_characters`` or ``end_rule`` is not valid.
    """
    _require_plain(tokenizer)
    if piece_characters < 1:
        raise ValueError(f"piece_characters is {piece_characters}, expected at least 1")
    if end_rule not in ("contained", "last_character"):
        raise ValueError(f'end_rule is {end_rule!r}, expected "contained" or "last_character"')
    text = "".join(unit.model_text for unit in units)
    ids, starts, ends = [_NONE], [_NONE], [_NONE]
    for piece_ids, offsets in tokenize_in_pieces(tokenizer, text, piece_characters):
        ids.append(piece_ids)
        starts.append(offsets[:, 0])
        ends.append(offsets[:, 1])
    input_ids, first_characters, stops = np.concatenate(ids), np.concatenate(starts), np.concatenate(ends)
    if units and not len(input_ids):
        raise ValueError(
            f"the tokenizer gives no tokens for a text of {len(text)} characters, expected at least one; "
            "use the tokenizer that belongs to the checkpoint"
        )
    unit_ends = _unit_ends(units, first_characters, stops, end_rule)
    return DocumentTokens(input_ids, first_characters, stops, unit_ends)


def build_stream(
    question_ids: NDArray[np.int32],
    document: DocumentTokens,
    *,
    first_unit: int = 0,
    last_unit: int | None = None,
    reanchor_tokens: int | None = None,
    match_classes: NDArray[np.uint8] | None = None,
    question_class: int = 6,
) -> TokenStream:
    """Put the question before the document's tokens of the units ``first_unit`` to ``last_unit``.

    Parameters
    ----------
    question_ids : int32 array, shape (question_tokens,)
        From :func:`tokenize_question`.
    document : DocumentTokens
        From :func:`tokenize_units`.
    first_unit, last_unit : int, default the whole document
        Units to read, both inclusive. Tokens after the last unit's end token are left out. A token
        that the first unit shares with the unit before it is read.
    reanchor_tokens : int, optional
        Repeat the question right after a unit's end token, once at least so many tokens of the
        document have been read since the question.
    match_classes : uint8 array, shape (document_tokens,), optional
        Lexical match class of each token of the whole document.
    question_class : int, default 6
        Match class of the question's tokens.

    Returns
    -------
    TokenStream
        ``unit_ends`` has shape ``(last_unit - first_unit + 1,)``.

    Raises
    ------
    ValueError
        If the units are out of range, ``reanchor_tokens`` is below 1, or ``match_classes`` does not
        have one entry per document token.
    """
    n_units = len(document.unit_ends)
    last_unit = n_units - 1 if last_unit is None else last_unit
    if reanchor_tokens is not None and reanchor_tokens < 1:
        raise ValueError(f"reanchor_tokens is {reanchor_tokens}, expected at least 1, or None for no repeats")
    if match_classes is not None and len(match_classes) != len(document.input_ids):
        raise ValueError(
            f"match_classes has {len(match_classes)} entries, expected one per document token "
            f"({len(document.input_ids)})"
        )
    question_ids = question_ids.astype(np.int32, copy=False)
    if n_units == 0 and first_unit == 0 and last_unit == -1:
        classes = None if match_classes is None else np.full(len(question_ids), question_class, np.uint8)
        return TokenStream(question_ids, np.zeros(0, np.int64), classes)
    if not 0 <= first_unit <= last_unit < n_units:
        raise ValueError(
            f"units {first_unit} to {last_unit} asked for, expected a range within 0 to {n_units - 1}"
        )

    token_ends = document.unit_ends[first_unit : last_unit + 1]
    begin = 0 if first_unit == 0 else min(int(document.unit_ends[first_unit - 1]) + 1, int(token_ends[0]))
    stop = int(token_ends[-1]) + 1
    anchors = np.array([begin, *_anchors(token_ends, begin, stop, reanchor_tokens)], dtype=np.int64)
    repeats = np.searchsorted(anchors, token_ends, side="right")  # questions read before each end
    unit_ends = token_ends - begin + repeats * len(question_ids)

    def interleave(question: NDArray[np.generic], tokens: NDArray[np.generic]) -> NDArray[np.generic]:
        pieces = np.split(tokens[begin:stop], anchors[1:] - begin)
        return np.concatenate([part for piece in pieces for part in (question, piece)])

    stream_classes = None
    if match_classes is not None:
        question_classes = np.full(len(question_ids), question_class, np.uint8)
        stream_classes = interleave(question_classes, match_classes).astype(np.uint8, copy=False)
    input_ids = interleave(question_ids, document.input_ids).astype(np.int32, copy=False)
    return TokenStream(input_ids, unit_ends, stream_classes)


def _anchors(token_ends: NDArray[np.int64], begin: int, stop: int, every: int | None) -> Iterator[int]:
    """Document tokens that the question is repeated in front of."""
    if every is None:
        return
    position = begin
    while True:
        unit = int(np.searchsorted(token_ends, position + every - 1))
        if unit == len(token_ends) or int(token_ends[unit]) + 1 >= stop:
            return
        position = int(token_ends[unit]) + 1
        yield position


def _unit_ends(
    units: Sequence[Unit], starts: NDArray[np.int32], ends: NDArray[np.int32], end_rule: EndRule
) -> NDArray[np.int64]:
    """Index of each unit's last token, shape (units,)."""
    lengths = np.fromiter((len(unit.model_text) for unit in units), np.int64, len(units))
    unit_stops = np.cumsum(lengths)
    if end_rule == "contained":
        found = np.searchsorted(np.maximum.accumulate(ends), unit_stops, side="right") - 1
    else:
        kept = np.fromiter((len(unit.model_text.rstrip()) for unit in units), np.int64, len(units))
        last_characters = np.minimum(unit_stops - lengths + np.maximum(kept, 1), unit_stops) - 1
        found = np.searchsorted(np.maximum.accumulate(starts), last_characters, side="right") - 1
    return np.maximum.accumulate(np.maximum(found, 0)).astype(np.int64)


def _require_plain(tokenizer: Tokenizer) -> None:
    if tokenizer.truncation is not None or tokenizer.padding is not None:
        raise ValueError(
            "the tokenizer truncates or pads, expected neither; "
            "call its no_truncation() and no_padding() first"
        )
