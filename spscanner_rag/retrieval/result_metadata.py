"""Metadata that results have in both frameworks: scores, the page where a sentence ends, what was saved."""

from collections.abc import Callable
from typing import Any

from spscanner_rag.retrieval.joined_text import JoinedText
from spscanner_rag.retrieval.pruning import reduction
from spscanner_rag.retrieval.search import Hit

ID_KEY = "spscanner_id"
"""Key of the id of a sentence, the same in every run."""

_LOGIT, _DOCUMENT_SCORE, _RETRIEVAL_SCORE, _TOKENS_KEPT, _TOKENS_READ = SCORE_KEYS = (
    "spscanner_logit",
    "spscanner_document_score",
    "spscanner_retrieval_score",
    "spscanner_tokens_kept",
    "spscanner_tokens_read",
)
"""Keys whose values depend on the question."""


def scores_metadata(logit: float, document_score: float, retrieval_score: float | None) -> dict[str, float]:
    """The scores of a result; ``retrieval_score`` only if there is one."""
    scores = {_LOGIT: logit, _DOCUMENT_SCORE: document_score}
    return scores if retrieval_score is None else scores | {_RETRIEVAL_SCORE: retrieval_score}


def compression_metadata(kept: int, read: int) -> dict[str, int]:
    """Tokens of all results of a question together, and of all texts that were read for it."""
    return {_TOKENS_KEPT: kept, _TOKENS_READ: read}


def continued_metadata(
    hit: Hit, text: JoinedText, page_of: Callable[[int], object], unknown: int | None = None
) -> dict[str, Any]:
    """The last page that a sentence runs over to, and its span there; empty if it ends where it begins.

    Parameters
    ----------
    hit : Hit
    text : JoinedText
        The text that contains the sentence.
    page_of : callable
        The page of a piece, by its index.
    unknown : int, optional
        Stands for an unknown offset.
    """
    *_, last = text.places(hit.start, hit.end)
    if last.source == hit.place.source:
        return {}
    return {
        "spscanner_continued_page": page_of(last.piece),
        "spscanner_continued_start": unknown if last.source_start is None else last.source_start,
        "spscanner_continued_end": unknown if last.source_end is None else last.source_end,
    }


def reduction_metadata(text: str, pruned: str, count_tokens: Callable[[str], int] | None) -> dict[str, float]:
    """The share of a piece's characters that pruning saved, and of its tokens, if they can be counted."""
    saved = {"spscanner_character_reduction": reduction(len, text, pruned)}
    if count_tokens is not None:
        saved["spscanner_token_reduction"] = reduction(count_tokens, text, pruned)
    return saved
