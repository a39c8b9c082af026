"""Prunes a piece's text to its selected sentences."""

from collections.abc import Callable

from spscanner_rag.retrieval.joined_text import JoinedText, Placed
from spscanner_rag.retrieval.selected_pieces import SelectedPiece, Span

# Replaces the text left out between two sentences, as in the paper's contexts.
GAP = "\n"


def pruned_text(text: str, joined: JoinedText, selected: SelectedPiece) -> str:
    """A piece's text pruned to the selected parts.

    White space between neighbours stays, other text is ``GAP``.
    """
    placed = next(p for p in joined.placed if p.number == selected.piece_number)
    pruned = ""
    end_before = 0
    for span in selected.spans:
        start, end = _span_in_piece(text, joined.text, placed, span)
        if pruned:
            between = text[end_before:start]
            pruned += GAP if between.strip() else between
        pruned += text[start:end]
        end_before = end
    return pruned


def _span_in_piece(text: str, joined: str, placed: Placed, span: Span) -> Span:
    """A span of the joined text in the text of the piece."""
    start, end = span
    if placed.exact:
        shift = placed.offset - placed.start
        return start + shift, end + shift
    # The white space differs between the two, so only the other characters are counted.
    n_before = placed.offset + len("".join(joined[placed.start : start].split()))
    n_inside = len("".join(joined[start:end].split()))
    visible = [place for place, character in enumerate(text) if not character.isspace()]
    return visible[n_before], visible[n_before + n_inside - 1] + 1


def reduction_metadata(
    text: str, pruned: str, count_tokens: Callable[[str], int] | None
) -> dict[str, float]:
    """The share of a piece that pruning saves, from 0 to 1, as metadata.

    Characters are counted, and tokens where there is a counter.

    Examples
    --------
    >>> reduction_metadata("One. Two.", "One.", None)
    {'spscanner_character_reduction': 0.5555555555555556}
    """
    reductions = {"spscanner_character_reduction": _reduction(text, pruned, len)}
    if count_tokens is not None:
        saved_tokens = _reduction(text, pruned, count_tokens)
        reductions["spscanner_token_reduction"] = saved_tokens
    return reductions


def _reduction(text: str, pruned: str, count: Callable[[str], int]) -> float:
    return max(0.0, 1 - count(pruned) / max(count(text), 1))
