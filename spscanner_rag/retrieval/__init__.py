"""The framework-free half of the integrations: joining pieces of documents, search, and the choice of a scorer.

An integration imports only what ``__all__`` lists. Nothing here imports torch before a scanner is needed.
"""

from spscanner_rag.results.selection import Order
from spscanner_rag.retrieval.access_token import hide_token, hide_token_in_fields, split_token
from spscanner_rag.retrieval.background import off_loop
from spscanner_rag.retrieval.corpus import Corpus, estimated_tokens
from spscanner_rag.retrieval.corpus_folder import check_json, read_corpus, write_corpus
from spscanner_rag.retrieval.first_stage import (
    OwnFirstStage,
    ReadBounds,
    check_found,
    check_own_first_stage,
    choose_texts,
    restrict,
)
from spscanner_rag.retrieval.joined_text import JoinedText
from spscanner_rag.retrieval.metadata import copied_metadata, is_random_id, page_number
from spscanner_rag.retrieval.options import SentenceSearch
from spscanner_rag.retrieval.pieces import Piece, join_pieces
from spscanner_rag.retrieval.pruning import (
    KeptPiece,
    ReturnNodes,
    check_return_nodes,
    pruned_text,
)
from spscanner_rag.retrieval.result_metadata import (
    ID_KEY,
    SCORE_KEYS,
    compression_metadata,
    continued_metadata,
    reduction_metadata,
    scores_metadata,
)
from spscanner_rag.retrieval.search import Hit
from spscanner_rag.retrieval.shared_scanners import loading_options
from spscanner_rag.text.token_counts import CountTokens

__all__ = [
    "ID_KEY",
    "SCORE_KEYS",
    "Corpus",
    "CountTokens",
    "Hit",
    "JoinedText",
    "KeptPiece",
    "Order",
    "OwnFirstStage",
    "Piece",
    "ReadBounds",
    "ReturnNodes",
    "SentenceSearch",
    "check_found",
    "check_json",
    "check_own_first_stage",
    "check_return_nodes",
    "choose_texts",
    "compression_metadata",
    "continued_metadata",
    "copied_metadata",
    "estimated_tokens",
    "hide_token",
    "hide_token_in_fields",
    "is_random_id",
    "join_pieces",
    "loading_options",
    "off_loop",
    "page_number",
    "pruned_text",
    "read_corpus",
    "reduction_metadata",
    "restrict",
    "scores_metadata",
    "split_token",
    "write_corpus",
]
