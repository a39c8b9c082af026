"""Which texts are read: all within the bounds, else the best; filters leave scores and other texts alone."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.retrieval.corpus import Corpus, estimated_tokens
from spscanner_rag.retrieval.first_stage import Chosen, ReadBounds, choose_texts, restrict
from spscanner_rag.retrieval.joined_text import JoinedText
from spscanner_rag.retrieval.pieces import Piece, join_pieces


def read(*texts: str) -> list[JoinedText]:
    return join_pieces([Piece(text=text, key=str(n), source=n, start=0) for n, text in enumerate(texts)])


def corpus_of(*texts: str) -> Corpus:
    return Corpus().with_texts(read(*texts))


NOTES = [f"Note {number}. It rained." for number in range(8)]


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "10"])
@pytest.mark.parametrize("name", ["read_documents", "read_tokens"])
def test_a_bound_out_of_range_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(
        ValueError, match=re.escape(f"{name}: got {value!r}; expected an integer of at least 1")
    ):
        ReadBounds(**{name: value})  # type: ignore[arg-type]


def test_within_the_bounds_all_are_read_in_their_order() -> None:
    corpus = corpus_of(*NOTES)
    every = [Chosen(number, None) for number in range(8)]
    assert choose_texts(corpus, "note 3", ReadBounds()) == every
    assert choose_texts(corpus, "note 3", ReadBounds(8)) == every
    assert choose_texts(corpus, "note 3", ReadBounds(None, None)) == every
    assert choose_texts(corpus, "note 3", ReadBounds(2), among=[1, 3]) == [Chosen(1, None), Chosen(3, None)]


def test_the_best_are_read_in_the_order_of_the_corpus() -> None:
    corpus = corpus_of(*NOTES, "Snow on note 9, and note 9 again.")
    chosen = choose_texts(corpus, "snow on note 9, or 2", ReadBounds(2))
    assert [own.number for own in chosen] == [2, 8]
    assert None not in [own.score for own in chosen]


def test_texts_without_a_word_of_the_query_come_last() -> None:
    corpus = corpus_of(*NOTES, "A viper sleeps.")
    assert [own.number for own in choose_texts(corpus, "viper", ReadBounds(3))] == [0, 1, 8]
    assert choose_texts(corpus, "viper", ReadBounds(3))[0] == Chosen(0, None)
    assert [own.number for own in choose_texts(corpus, "xyzzy", ReadBounds(2))] == [0, 1]


def test_empty_texts_take_no_place() -> None:
    corpus = corpus_of("", *NOTES, " \n")
    assert [own.number for own in choose_texts(corpus, "xyzzy", ReadBounds(2))] == [1, 2]
    assert [own.number for own in choose_texts(corpus_of("", ""), "x", ReadBounds())] == []
    assert choose_texts(Corpus(), "x", ReadBounds()) == []


def test_a_large_text_does_not_shut_out_the_small_ones_behind_it() -> None:
    large = "The viper sleeps in winter. " * 4000
    corpus = corpus_of(*NOTES, large, "A viper.", "The viper eats.")
    bounds = ReadBounds(4, read_tokens=100)
    numbers = [own.number for own in choose_texts(corpus, "Does the viper eat?", bounds)]
    assert 9 in numbers
    assert 10 in numbers
    assert 8 not in numbers
    best_is_large = choose_texts(corpus, "sleeps in winter", bounds)
    assert [own.number for own in best_is_large] == [8]


@given(
    st.lists(st.integers(1, 50), max_size=12),
    st.none() | st.integers(1, 6),
    st.none() | st.integers(1, 100),
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


@given(st.sets(st.integers(0, 3)))
def test_a_filter_keeps_the_text_and_drops_pieces(admitted: set[int]) -> None:
    pieces = [
        Piece(text=f"Page {n}.", key=str(n), source=n, start=0, group="a", position=n) for n in range(4)
    ]
    (joined,) = join_pieces(pieces)
    found = restrict(joined, admitted.__contains__)
    if not admitted:
        assert found is None
        return
    assert found is not None
    assert (found.text, found.runs) == (joined.text, joined.runs)
    for placed in joined.placed:
        assert found.touches(placed.start, placed.end) == (placed.number in admitted)
    assert (found is joined) == (len(admitted) == 4)


def test_bounds_count_what_is_estimated() -> None:
    corpus = corpus_of("An even note. " * 10, "The other note. " * 10)
    tokens = estimated_tokens(corpus.texts[0].text)
    assert len(choose_texts(corpus, "note", ReadBounds(10, 2 * tokens + 10))) == 2
    assert len(choose_texts(corpus, "note", ReadBounds(10, 2 * tokens - 10))) == 1
