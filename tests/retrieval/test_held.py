"""The held corpus: changed, counted, persisted; and which texts are read for a question."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.baselines.bm25 import BM25
from spscanner_rag.retrieval.corpus import Corpus, estimated_tokens
from spscanner_rag.retrieval.held import ReadBounds, choose_texts
from spscanner_rag.retrieval.shared_scanners import ScorerChoice
from tests.retrieval.searching import joined

NOTES = [f"Note {number}. It rained." for number in range(8)]


def test_the_automatic_bound_is_lower_on_a_cpu(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    tokens = [60_000] * 4
    assert ReadBounds().on(ScorerChoice(scorer=BM25())).kept(tokens) == [0, 1, 2]
    assert ReadBounds().on(ScorerChoice(device="cpu")).kept(tokens) == [0]
    assert "1 documents of 60000 tokens are read, 3 are not" in caplog.text
    assert ReadBounds(read_tokens=150_000).on(ScorerChoice(device="cpu")).kept(tokens) == [0, 1]
    assert ReadBounds(read_tokens=None).on(ScorerChoice(device="cpu")).kept(tokens) == [0, 1, 2, 3]


def test_texts_without_a_word_of_the_query_come_last() -> None:
    corpus = Corpus().with_texts(joined([*NOTES, "A viper sleeps."]))
    assert [number for number, _ in choose_texts(corpus, "viper", ReadBounds(3))] == [0, 1, 8]
    assert choose_texts(corpus, "viper", ReadBounds(3))[0] == (0, None)
    assert [number for number, _ in choose_texts(corpus, "xyzzy", ReadBounds(2))] == [0, 1]


@given(
    st.lists(st.integers(1, 50), max_size=12), st.none() | st.integers(1, 6), st.none() | st.integers(1, 100)
)
def test_bounds_hold_but_for_the_first(tokens: list[int], most: int | None, budget: int | None) -> None:
    kept = ReadBounds(most, budget).kept(tokens)
    assert kept == sorted(set(kept))
    assert kept[:1] == ([0] if tokens else [])
    assert most is None or len(kept) <= most
    total = sum(tokens[number] for number in kept)
    assert budget is None or total <= budget or kept == [0]
    for number in set(range(len(tokens))) - set(kept):  # none is left out without a reason
        before = [other for other in kept if other < number]
        full = most is not None and len(before) >= most
        assert full or (budget is not None and sum(tokens[n] for n in before) + tokens[number] > budget)


@given(st.text(max_size=50))
def test_the_estimate_of_tokens(text: str) -> None:
    tokens = estimated_tokens(text)
    assert (tokens == 0) == (not text.strip())
    if tokens:
        n_ascii = sum(ord(character) < 128 for character in text)
        others = sum(len(c.encode("utf-8", "surrogatepass")) for c in text if ord(c) >= 128)
        assert tokens == (n_ascii + 3) // 4 + others
