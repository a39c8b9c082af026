"""Options of framework classes: checked under the names that the class gives them, and turned into a search."""

import subprocess
import sys
from typing import Any

import pytest

from spscanner_rag.retrieval import SentenceSearch
from tests.fakes import ScoredBy

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


LENGTHS = ScoredBy(lambda query, text, units: (unit.end - unit.start for unit in units))


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
        ({"scorer": LENGTHS, "max_tokens": 9}, "max_tokens: got 9, but ScoredBy counts no tokens"),
        ({"scanner": LENGTHS}, "scanner is ScoredBy; expected a spscanner_rag.Scanner"),
    ],
)
def test_errors_name_the_options_as_the_class_does(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=f"^{message}"):
        search_of(**options)


def test_the_api_comes_without_torch() -> None:
    code = "import sys, spscanner_rag.retrieval; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("False\n", "")
