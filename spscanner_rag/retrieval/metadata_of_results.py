"""The metadata of results: copies of a document's, and the keys that are added."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from spscanner_rag.text.word_boxes import WORDS_KEY

ID_KEY = "spscanner_id"  # key of the id of a sentence, the same in every run
SCORE_KEYS = (
    "spscanner_logit",
    "spscanner_probability",
    "spscanner_document_score",
    "spscanner_answerable",
    "spscanner_retrieval_score",
)
"""Keys whose values depend on the query."""


def result_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of metadata for a result, without the places of the page's words."""
    copy = dict(metadata)
    copy.pop(WORDS_KEY, None)
    return copied_metadata(copy)


def copied_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """A deep copy of metadata, or a shallow one if a value cannot be copied."""
    try:
        return deepcopy(dict(metadata))
    except Exception:  # a value such as a lock
        return dict(metadata)
