"""A corpus: counted once, also over changes, copies and pickles; never touched by a change."""

import copy
import pickle
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.retrieval.corpus import Corpus, estimated_tokens
from spscanner_rag.retrieval.joined_text import JoinedText
from spscanner_rag.retrieval.pieces import Piece, join_pieces

SOUP = "Cut the leek. Boil the soup for an hour. Serve it with bread."
SNAKE = "The viper is a snake. It sleeps in winter. It eats mice."
TREATY = "The council signed the treaty. The keeper wrote it down."


def read(*texts: str) -> list[JoinedText]:
    """Each text as a document of its own."""
    return join_pieces([Piece(text=text, key=str(n), source=n, start=0) for n, text in enumerate(texts)])


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """First sentences of the texts whose words were counted."""
    seen: list[str] = []
    original = CollectionIndex.add

    def add(self: CollectionIndex, key: str, model_texts: Sequence[str]) -> None:
        seen.append(model_texts[0].strip() if model_texts else "")
        original(self, key, model_texts)

    monkeypatch.setattr(CollectionIndex, "add", add)
    return seen


def best(corpus: Corpus, query: str) -> list[int]:
    return [number for number, _ in corpus.ranked(query)]


def test_texts_are_ranked_by_the_words_that_they_share_with_the_query() -> None:
    corpus = Corpus().with_texts(read(SOUP, SNAKE, TREATY))
    assert best(corpus, "Which snake eats mice in winter?") == [1]
    assert best(corpus, "Who signed the treaty?") == [2]
    assert best(corpus, "xyzzy") == []


def test_a_pickle_holds_the_counts_and_a_copy_shares_them(counted: list[str]) -> None:
    texts = read(SOUP, SNAKE)
    corpus = Corpus().with_texts(texts)
    assert copy.deepcopy(corpus) is corpus
    data = pickle.dumps(corpus)
    assert SOUP[:20].encode() not in data
    loaded = pickle.loads(data).with_texts(texts)
    assert len(counted) == 2
    assert loaded.ranked("soup") == corpus.ranked("soup")


@given(st.text(max_size=50))
def test_the_estimate_of_tokens(text: str) -> None:
    tokens = estimated_tokens(text)
    assert (tokens == 0) == (not text.strip())
    if tokens:
        n_ascii = sum(ord(character) < 128 for character in text)
        others = sum(len(c.encode("utf-8", "surrogatepass")) for c in text if ord(c) >= 128)
        assert tokens == (n_ascii + 3) // 4 + others
