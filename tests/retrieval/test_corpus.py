"""A corpus: counted once, also over changes, copies and pickles; never touched by a change."""

import copy
import pickle
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.lexical.match import PLAIN_MATCH
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


def test_only_new_texts_are_counted(counted: list[str]) -> None:
    first, second, third = read(SOUP, SNAKE, TREATY)
    corpus = Corpus().with_texts([first, second])
    assert counted == ["Cut the leek.", "The viper is a snake."]
    corpus = corpus.with_texts([third, second])
    assert counted[2:] == ["The council signed the treaty."]
    assert best(corpus, "soup treaty snake") == best(
        Corpus().with_texts([third, second]), "soup treaty snake"
    )
    assert len(corpus.counts) == 2


def test_texts_joined_again_are_not_counted_again(counted: list[str]) -> None:
    corpus = Corpus().with_texts(read(SOUP, SNAKE))
    corpus.with_texts(read(SOUP, SNAKE))
    assert len(counted) == 2


def test_a_corpus_is_as_it_was_after_a_change() -> None:
    before = Corpus().with_texts(read(SOUP, SNAKE))
    statistics = before.counts.statistics("soup snake", PLAIN_MATCH)
    after = before.with_texts(read(TREATY, SNAKE, "Another soup. And a soup."))
    assert best(after, "soup") == [2]
    assert best(before, "soup") == [0]
    assert before.counts.statistics("soup snake", PLAIN_MATCH).idf.tolist() == statistics.idf.tolist()
    assert before.counts.n_units == 6
    assert after.counts.n_units == 7


def test_equal_texts_are_two_documents() -> None:
    corpus = Corpus().with_texts(read(SOUP, SOUP, SNAKE))
    assert len(set(corpus.keys)) == 3
    assert best(corpus, "soup") == [0, 1]
    assert corpus.counts.n_units == 9
    assert best(corpus.with_texts(read(SOUP, SNAKE)), "soup") == [0]


def test_a_single_text_is_compared_with_nothing(counted: list[str]) -> None:
    corpus = Corpus().with_texts(read(SOUP))
    assert corpus.collection is None
    assert counted == []
    both = corpus.with_texts(read(SOUP, SNAKE))
    assert both.collection is both.counts
    assert both.counts.n_units == 6
    alone = both.with_texts(read(SNAKE))
    assert alone.collection is None


def test_empty_texts_are_in_it() -> None:
    corpus = Corpus().with_texts(join_pieces([]))
    assert (corpus.ranked("soup"), corpus.collection) == ([], None)
    corpus = Corpus().with_texts(read("", "  \n", SOUP, ""))
    assert best(corpus, "soup") == [2]
    assert corpus.tokens == [0, 0, estimated_tokens(SOUP), 0]


def test_runs_are_cut_as_a_search_cuts_them() -> None:
    pieces = [
        Piece(text="The well was dry", key="1", source=1, start=0, group="a"),
        Piece(text="and the mill stood still.", key="2", source=2, start=0, group="a"),
    ]
    (pages,) = join_pieces(pieces)
    corpus = Corpus().with_texts([pages, *read(SOUP)])
    assert corpus.counts.n_units == 2 + 3
    (other,) = read(pages.text)
    assert Corpus().with_texts([pages, other]).keys[0] != Corpus().with_texts([other, pages]).keys[0]


def test_a_pickle_holds_the_counts_and_a_copy_shares_them(counted: list[str]) -> None:
    texts = read(SOUP, SNAKE)
    corpus = Corpus().with_texts(texts)
    assert copy.deepcopy(corpus) is corpus
    data = pickle.dumps(corpus)
    assert SOUP[:20].encode() not in data
    loaded = pickle.loads(data).with_texts(texts)
    assert len(counted) == 2
    assert loaded.ranked("soup") == corpus.ranked("soup")


@pytest.mark.parametrize("n_texts", [2_000, pytest.param(30_000, marks=pytest.mark.slow)])
def test_many_tiny_texts_and_a_large_one_among_them(n_texts: int) -> None:
    tiny = [f"Note {number} on the viper." for number in range(n_texts)]
    n_sentences = 10_000 if n_texts < 10_000 else 40_000  # 1 MB
    large = "The harbour was quiet. " * n_sentences
    corpus = Corpus().with_texts(read(*tiny[:1000], large, *tiny[1000:]))
    assert best(corpus, "quiet harbour") == [1000]
    assert best(corpus, f"note {n_texts - 1}")[0] == n_texts
    assert corpus.counts.n_units == n_sentences + n_texts


@given(st.text(max_size=50))
def test_the_estimate_of_tokens(text: str) -> None:
    tokens = estimated_tokens(text)
    assert (tokens == 0) == (not text.strip())
    if tokens:
        n_ascii = sum(ord(character) < 128 for character in text)
        others = sum(len(c.encode("utf-8", "surrogatepass")) for c in text if ord(c) >= 128)
        assert tokens == (n_ascii + 3) // 4 + others


@given(st.lists(st.sampled_from([SOUP, SNAKE, TREATY, "", "Soup!"]), max_size=6), st.data())
def test_a_changed_corpus_is_that_of_its_texts(texts: list[str], data: st.DataObject) -> None:
    corpus = Corpus().with_texts(read(*texts))
    changed = data.draw(st.lists(st.sampled_from([SOUP, SNAKE, "The mice.", ""]), max_size=6))
    fresh, updated = Corpus().with_texts(read(*changed)), corpus.with_texts(read(*changed))
    for query in ("soup", "snake mice winter", "treaty"):
        assert dict(updated.ranked(query)) == pytest.approx(dict(fresh.ranked(query)))
    assert updated.counts.n_units == fresh.counts.n_units
