"""The framework-free half of the integrations: joined texts, the held corpus, search, and results.

An integration imports only what ``__all__`` lists. Nothing here imports torch until a
scanner is needed.
"""

from typing import TYPE_CHECKING, Any

from spscanner_rag.retrieval.answers import (
    ID_KEY,
    SCORE_KEYS,
    Answer,
    Hit,
    copied_metadata,
    is_random_id,
    result_metadata,
)
from spscanner_rag.retrieval.corpus import check_json
from spscanner_rag.retrieval.held import HeldCorpus, Host, ReadBounds, ReadText
from spscanner_rag.retrieval.joined_text import JoinedText
from spscanner_rag.retrieval.pieces import (
    Piece,
    join_pieces,
    page_label,
    page_number,
    share_text,
)
from spscanner_rag.retrieval.search import SentenceSearch
from spscanner_rag.retrieval.shared_scanners import loading_options
from spscanner_rag.system.install_hints import import_extra, install_line

if TYPE_CHECKING:
    from spscanner_rag.retrieval.scan_fields import RetrieverFields, ScanFields

__all__ = [
    "ID_KEY",
    "SCORE_KEYS",
    "Answer",
    "HeldCorpus",
    "Hit",
    "Host",
    "JoinedText",
    "Piece",
    "ReadBounds",
    "ReadText",
    "RetrieverFields",
    "ScanFields",
    "SentenceSearch",
    "check_json",
    "copied_metadata",
    "import_extra",
    "install_line",
    "is_random_id",
    "join_pieces",
    "loading_options",
    "page_label",
    "page_number",
    "result_metadata",
    "share_text",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a class
    if name in (
        "RetrieverFields",
        "ScanFields",
    ):  # they need pydantic, which only the frameworks install
        from spscanner_rag.retrieval import scan_fields

        return getattr(scan_fields, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
