"""Options of framework classes: checked under the names that the class gives them, and turned into a search."""

import copy
import pickle
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from spscanner_rag.retrieval import Piece, SentenceSearch, join_pieces
from spscanner_rag.retrieval.answers import KeptPiece
from spscanner_rag.retrieval.joined_text import JoinedText
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import never

OPTIONS: dict[str, Any] = {
    "model": None,
    "scanner": None,
    "scorer": None,
    "backend": "auto",
    "device": "auto",
    "dtype": "auto",
    "model_kwargs": {},
    "best": 50,
    "best_of_each": None,
    "threshold": None,
    "require_answer": None,
    "max_tokens": None,
    "count_tokens": None,
    "context_sentences": 0,
    "order": "score",
    "merge_adjacent": False,
    "diversity": 1.0,
    "always_keep": None,
    "batch_size": 64,
    "return_nodes": "sentence",
    "keep_retrieval_score": False,
    "keep_compression": False,
    "of_the_class": "ignored",
}
QUERY = "Who signed the treaty?"


class Lengths:
    """Scores a sentence by its length; cannot count tokens."""

    def score_units(self, query: str, text: str, units: Sequence[Any]) -> Any:
        return np.array([unit.end - unit.start for unit in units], np.float32)


def pieces_of(search: SentenceSearch, texts: Sequence[JoinedText], **options: bool) -> list[KeptPiece]:
    scored = search._scored(QUERY, texts, never)
    assert scored is not None
    return search.pieces(scored, search.selection, **options)


def search_of(**options: Any) -> SentenceSearch:
    return SentenceSearch.of(OPTIONS | options, top_k="best", top_k_per_text="best_of_each")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"best": 0}, "best: got 0"),
        ({"best_of_each": 0}, "best_of_each: got 0"),
        ({"context_sentences": -1}, "context_sentences: got -1"),
        ({"merge_adjacent": 1}, "merge_adjacent: got 1"),
        ({"threshold": 2}, "threshold: got 2"),
        ({"batch_size": True}, "batch_size: got True"),
        ({"scorer": Lengths(), "max_tokens": 9}, "max_tokens: got 9, but Lengths counts no tokens"),
        ({"scanner": Lengths()}, "scanner is Lengths; expected a spscanner_rag.Scanner"),
    ],
)
def test_errors_name_the_options_as_the_class_does(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=f"^{message}"):
        search_of(**options)


def test_the_best_sentences() -> None:
    texts = join_pieces([Piece(text="Short. A longer one. The longest of all.", key="a", source="a")])
    hits = search_of(scorer=Lengths(), best=2)(QUERY, texts)
    assert [hit.text for hit in hits] == ["The longest of all.", "A longer one."]


def test_the_pieces_of_the_best_sentences() -> None:
    text = "It rained. A longer one of all. The longest sentence of this text. The end."
    pieces = [
        Piece(text=text[:31], key="a", source="d", start=0),
        Piece(text=text[11:40], key="b", source="d", start=11),  # its selected sentence is in the first, too
        Piece(text=text[32:], key="c", source="d", start=32),
    ]
    texts = join_pieces(pieces)
    options = {"scorer": Lengths(), "best": 2, "merge_adjacent": True}
    found = pieces_of(search_of(**options), texts)
    assert [(own.piece, own.best.text) for own in found] == [
        (2, "The longest sentence of this text."),
        (0, "A longer one of all."),
        (1, "A longer one of all."),
    ]
    in_order = search_of(**options, order="document")
    assert [own.piece for own in pieces_of(in_order, texts)] == [0, 1, 2]
    assert [own.piece for own in pieces_of(in_order, texts, pruned=True)] == [0, 2]


def test_nothing_to_read_loads_nothing() -> None:
    search = search_of(model="/no/such/folder", model_kwargs=None)
    assert search(QUERY, []) == []
    assert search(QUERY, join_pieces([Piece(text=" \n", key="a", source="a", start=0)])) == []


def test_pickles_load_the_scanner_again_and_copies_share_it(tiny_scanner: Scanner) -> None:
    search = search_of(scanner=tiny_scanner, model_kwargs={})
    assert copy.deepcopy(search).choice.scanner is tiny_scanner
    data = pickle.dumps(search)
    assert len(data) < 3000
    texts = join_pieces([Piece(text="He signed the treaty. It rained.", key="a", source="a")])
    assert pickle.loads(data)(QUERY, texts) == search(QUERY, texts)


def test_the_api_comes_without_torch() -> None:
    code = "import sys, spscanner_rag.retrieval; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("False\n", "")
