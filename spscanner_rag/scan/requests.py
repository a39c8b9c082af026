"""What is asked of a pipeline: a query on a text, with what is known of the text."""

from collections.abc import Sequence
from typing import NamedTuple

from spscanner_rag.encoder.sentence_vectors import SentenceVectors
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.results.passages import Located
from spscanner_rag.scan.indexed_text import IndexedText
from spscanner_rag.text.units import Unit

LONGEST_QUESTION = 4000
"""Characters.

If a longer question comes with a shorter text, the two are taken to be swapped by
mistake.
"""


class ScanRequest(NamedTuple):
    """A query on a text.

    ``units`` replace the segmenter's, and ``collection`` the words of the text alone.
    """

    query: str
    text: str
    units: Sequence[Unit] | None = None
    collection: CollectionIndex | None = None
    document: Located | None = None  # has the places of the text's characters
    # what a `PreparedDocument` has of the text with these units
    prepared: IndexedText | None = None
    vectors: SentenceVectors | None = None


def check_order(query: str, text: str) -> None:
    """Raise ``ValueError`` if a query and a text were probably swapped."""
    if LONGEST_QUESTION < len(query) > len(text) > 0:
        raise ValueError(
            f"the query has {len(query):,} characters and the text {len(text):,};"
            " expected the question first and then the text: exchange them (if the"
            " query is meant to be longer than the text, use score_units)"
        )
