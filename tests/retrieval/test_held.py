"""The held corpus: changed, counted, persisted; and which texts are read for a question."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.baselines.bm25 import BM25
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.retrieval.corpus import Corpus
from spscanner_rag.retrieval.corpus_folder import write_corpus
from spscanner_rag.retrieval.held import HeldCorpus, Host, ReadBounds, ReadText, choose_texts
from spscanner_rag.retrieval.joined_text import JoinedText
from spscanner_rag.retrieval.pieces import Piece, join_pieces
from spscanner_rag.retrieval.shared_scanners import ScorerChoice


def pieces_of(texts: Sequence[str]) -> list[Piece]:
    return [Piece(text=text, key=str(n), source=n, start=0) for n, text in enumerate(texts)]


def read(*texts: str) -> list[JoinedText]:
    return join_pieces(pieces_of(texts))


def corpus_of(*texts: str) -> Corpus:
    return Corpus().with_texts(read(*texts))


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
    corpus = corpus_of(*NOTES, "A viper sleeps.")
    assert [number for number, _ in choose_texts(corpus, "viper", ReadBounds(3))] == [0, 1, 8]
    assert choose_texts(corpus, "viper", ReadBounds(3))[0] == (0, None)
    assert [number for number, _ in choose_texts(corpus, "xyzzy", ReadBounds(2))] == [0, 1]


def test_a_large_text_does_not_shut_out_the_small_ones_behind_it() -> None:
    large = "The viper sleeps in winter. " * 4000
    corpus = corpus_of(*NOTES, large, "A viper.", "The viper eats.")
    bounds = ReadBounds(4, read_tokens=100)
    numbers = [number for number, _ in choose_texts(corpus, "Does the viper eat?", bounds)]
    assert 9 in numbers
    assert 10 in numbers
    assert 8 not in numbers
    best_is_large = choose_texts(corpus, "sleeps in winter", bounds)
    assert [number for number, _ in best_is_large] == [8]


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


class Texts(Host[str]):
    """Documents that are strings, named by their first word; a found one may be a part of a held one."""

    framework = "texts"

    def key(self, item: str) -> str:
        return item.split()[0]

    def join(self, items: Sequence[str]) -> list[ReadText[str]]:
        return [ReadText(text, [item] * 10) for text, item in zip(read(*items), items, strict=True)]

    def finder(self, items: Sequence[str], texts: Sequence[ReadText[str]]) -> Callable[[str], int | None]:
        return lambda part: next((n for n, text in enumerate(texts) if part in text.joined.text), None)

    def read(self, found: Sequence[str]) -> list[ReadText[str]]:
        return [ReadText(text, found) for text in join_pieces(pieces_of(found))]

    def check_found(self, found: object) -> Sequence[str]:
        if not isinstance(found, list):
            raise TypeError("expected a list")
        return found

    def score(self, found: Sequence[str]) -> float:
        return len(found)

    def records(self, items: Sequence[str]) -> Iterable[Mapping[str, Any]]:
        return ({"text": item} for item in items)

    def restored(self, records: Sequence[Mapping[str, Any]]) -> tuple["Texts", Sequence[str]]:
        return self, [record["text"] for record in records]


def held(*texts: str) -> HeldCorpus[str]:
    return HeldCorpus(Texts(), texts)


def texts_of(chosen: Sequence[ReadText[str]]) -> list[tuple[str, float | None]]:
    return [(text.joined.text, text.score) for text in chosen]


ALL = ReadBounds(None, None)


def test_adding_and_deleting_give_another_corpus() -> None:
    corpus = held("a one.", "b two.")
    added = corpus.adding(["c three.", "a new."])
    assert (corpus.items, added.items) == (("a one.", "b two."), ("a new.", "b two.", "c three."))
    assert added.deleting(["a", "c"]).ids == added.deleting("a").deleting("c").ids == ["b"]
    with pytest.raises(ValueError, match="no document 'x' here"):
        added.deleting(["a", "x"])
    assert corpus.adding([]).counted()[0][0].joined.text == "a one."


def test_the_own_first_stages() -> None:
    corpus = held(*(f"{name} note." for name in "abcd"))
    assert len(corpus.read("b", "none", ReadBounds(1))) == 4
    ((text, score),) = texts_of(corpus.read("b", "bm25", ReadBounds(1)))
    assert text == "b note."
    assert score is not None
    passed = corpus.read("b", "bm25", ReadBounds(1), lambda item: item[0] in "cd")
    assert texts_of(passed) == [("c note.", None)]
    assert corpus.read("b", "bm25", ALL, lambda item: False) == []


def test_a_folder_gives_the_corpus_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = held("a one.", "b two.")
    corpus.persist(tmp_path)
    loaded = HeldCorpus.load(tmp_path, Texts())
    monkeypatch.setattr(CollectionIndex, "add", None)  # nothing is counted again
    assert loaded.items == corpus.items
    assert loaded.counted()[1].ranked("two") == corpus.counted()[1].ranked("two")


@pytest.mark.parametrize("record", [{}, {"text": 3}, {"text": None, "more": 1}, {"text": ""}])
def test_documents_of_another_form_are_refused(tmp_path: Path, record: dict[str, Any]) -> None:
    write_corpus(tmp_path, Texts.framework, [record], Corpus())
    with pytest.raises(ValueError, match=r"documents that are not texts's .*: persist them again"):
        HeldCorpus.load(tmp_path, Texts())
