"""The framework-free half of the integrations: texts, the corpus, search and results.

An integration imports only what ``__all__`` lists. Nothing here imports torch until a
scanner is needed.
"""

from typing import TYPE_CHECKING, Any

from spscanner_rag.retrieval.answers import Answer
from spscanner_rag.retrieval.held_corpus import HeldCorpus
from spscanner_rag.retrieval.hidden_token import without_token
from spscanner_rag.retrieval.hits import Hit
from spscanner_rag.retrieval.host import Host, ReadText
from spscanner_rag.retrieval.joined_text import JoinedText
from spscanner_rag.retrieval.joining import join_pieces
from spscanner_rag.retrieval.json_values import check_json
from spscanner_rag.retrieval.metadata_of_results import (
    ID_KEY,
    SCORE_KEYS,
    copied_metadata,
    result_metadata,
)
from spscanner_rag.retrieval.other_names import other_name_hint
from spscanner_rag.retrieval.overlaps import share_text
from spscanner_rag.retrieval.page_metadata import page_label, page_number
from spscanner_rag.retrieval.pieces import Piece
from spscanner_rag.retrieval.random_ids import is_random_id
from spscanner_rag.retrieval.read_bounds import ReadBounds
from spscanner_rag.retrieval.scorer_choice import loading_options
from spscanner_rag.retrieval.search import SentenceSearch
from spscanner_rag.system.install_hints import import_extra, install_line
from spscanner_rag.text.framing import framed, quoted

if TYPE_CHECKING:
    from spscanner_rag.retrieval.retriever_fields import RetrieverFields
    from spscanner_rag.retrieval.scan_fields import ScanFields

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
    "framed",
    "import_extra",
    "install_line",
    "is_random_id",
    "join_pieces",
    "loading_options",
    "other_name_hint",
    "page_label",
    "page_number",
    "quoted",
    "result_metadata",
    "share_text",
    "without_token",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a class
    # These need pydantic, which only the frameworks install.
    if name == "ScanFields":
        from spscanner_rag.retrieval.scan_fields import ScanFields

        return ScanFields
    if name == "RetrieverFields":
        from spscanner_rag.retrieval.retriever_fields import RetrieverFields

        return RetrieverFields
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
