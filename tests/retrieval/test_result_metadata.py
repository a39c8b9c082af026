"""The metadata of results, under the same keys in both frameworks."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from spscanner_rag.retrieval.joined_text import JoinedText, Place
from spscanner_rag.retrieval.pieces import Piece, join_pieces
from spscanner_rag.retrieval.result_metadata import (
    SCORE_KEYS,
    compression_metadata,
    continued_metadata,
    reduction_metadata,
    scores_metadata,
)
from spscanner_rag.retrieval.search import Hit, Selection, search


class ByPlace:
    def score_units(self, query: str, text: str, units: Sequence[Any]) -> Any:
        return -np.arange(len(units), dtype=np.float32)


def test_scores() -> None:
    assert (*scores_metadata(1.5, 0.9, 0.0), *compression_metadata(3, 30)) == SCORE_KEYS
    assert scores_metadata(1.5, 0.9, None) == {"spscanner_logit": 1.5, "spscanner_document_score": 0.9}


def test_a_sentence_over_a_page_break() -> None:
    texts = ["It rained. The bell of the", "tower rang. They left."]
    pieces = [
        Piece(text=text, key=str(n), source=n, group="f", position=n, page=True, last=True, start=0)
        for n, text in enumerate(texts)
    ]
    (joined,) = join_pieces(pieces)
    hits = search(ByPlace(), "x", [joined], Selection(order="document"))
    found = [continued_metadata(hit, joined, lambda piece: f"page {piece}") for hit in hits]
    assert found[0] == found[2] == {}
    assert found[1] == {
        "spscanner_continued_page": "page 1",
        "spscanner_continued_start": 0,
        "spscanner_continued_end": len("tower rang."),
    }


def test_an_unknown_place_on_the_next_page() -> None:
    first = Place(0, None, None, "page 0", None, None)
    hit = Hit("The bell rang.", 0.5, 0.0, 0, first, 11, 25, 0.5)
    text = cast(
        "JoinedText", SimpleNamespace(places=lambda start, end: [first, first._replace(source="page 1")])
    )
    found = continued_metadata(hit, text, lambda piece: piece, -1)
    assert (found["spscanner_continued_start"], found["spscanner_continued_end"]) == (-1, -1)
    assert continued_metadata(hit, text, lambda piece: piece)["spscanner_continued_end"] is None


def test_what_was_saved() -> None:
    assert reduction_metadata("a bc", "a", None) == {"spscanner_character_reduction": 0.75}
    assert reduction_metadata("a bc", "a", lambda text: len(text.split())) == {
        "spscanner_character_reduction": 0.75,
        "spscanner_token_reduction": 0.5,
    }
