"""The texts that are read for a question.

A corpus's vectors: made once, persisted, part of the first stage.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.baselines.bm25 import BM25
from spscanner_rag.encoder.meaning import Meaning
from spscanner_rag.encoder.meaning_weights import MeaningWeights
from spscanner_rag.encoder.sentence_vectors import digest_of
from spscanner_rag.encoder.text_encoder import TextEncoder
from spscanner_rag.retrieval.corpus_folder import read_corpus, write_corpus
from spscanner_rag.retrieval.first_stage import choose_texts
from spscanner_rag.retrieval.held_texts import HeldTexts
from spscanner_rag.retrieval.read_bounds import ReadBounds
from spscanner_rag.retrieval.scorer_choice import ScorerChoice
from spscanner_rag.retrieval.token_estimate import estimated_tokens
from spscanner_rag.scorers import ScanCancelled
from tests.retrieval.searching import joined

TEXTS = [
    "Cut the leek. Boil the soup for an hour.",
    "The stallion kicked him. He was bitten in the arm.",
    "The council signed the treaty. The man wrote it down.",
    "",
]
WEIGHTS = MeaningWeights(sentence=10.0)
LIKE = (
    ("animal", "stallion", "horse"),
    ("hurt", "bitten", "kicked"),
    ("soup", "leek", "meal"),
)
ONE = ReadBounds(read_documents=1)


def embed(texts: Sequence[str]) -> list[list[float]]:
    """One dimension for each group of words with like meaning."""
    return [
        [0.01, *(float(any(word in text.lower() for word in group)) for group in LIKE)]
        for text in texts
    ]


@pytest.fixture
def meaning() -> Meaning:
    """An encoder that knows only a few words."""
    return Meaning(TextEncoder(embed), WEIGHTS)


@pytest.fixture
def corpus() -> HeldTexts:
    """Four texts, one of them empty."""
    return HeldTexts().with_texts(joined(TEXTS))


def test_a_question_in_other_words_finds_its_document(
    corpus: HeldTexts, meaning: Meaning
) -> None:
    question = "Which animal hurt somebody?"
    assert [number for number, _ in choose_texts(corpus, question, ONE)] == [0]
    assert [
        number
        for number, _ in choose_texts(corpus, question, ONE, meaning=lambda: meaning)
    ] == [1]
    assert [
        number
        for number, _ in choose_texts(
            corpus, "the treaty", ONE, meaning=lambda: meaning
        )
    ] == [2]


def test_no_encoder_is_asked_for_where_all_is_read(corpus: HeldTexts) -> None:
    def never() -> Meaning:
        raise AssertionError

    assert len(choose_texts(corpus, "soup", ReadBounds(), meaning=never)) == 3


def test_vectors_are_made_once_and_kept_over_changes(
    corpus: HeldTexts, meaning: Meaning
) -> None:
    corpus.encode(meaning, range(4))
    changed = corpus.with_texts(joined([*TEXTS[:2], "A new horse."]))
    assert [changed.has_vectors(number, meaning) for number in range(3)] == [
        True,
        True,
        False,
    ]
    assert len(corpus.vectors) == 4


def test_a_folder_gives_the_vectors_back(
    corpus: HeldTexts, meaning: Meaning, tmp_path: Path
) -> None:
    corpus.encode(meaning, range(4))
    write_corpus(tmp_path, "ours", [], corpus)
    loaded = read_corpus(tmp_path, "ours")[1].with_texts(joined(TEXTS))
    fresh = Meaning(TextEncoder(embed), WEIGHTS)
    assert all(loaded.has_vectors(number, fresh) for number in range(4))
    assert loaded.meaning_logits("the horse", fresh, range(3)) == corpus.meaning_logits(
        "the horse", meaning, range(3)
    )
    loaded.encode(fresh, [1])
    kept = fresh.cache.get(
        digest_of(["The stallion kicked him. ", "He was bitten in the arm."]), 2
    )
    assert kept is not None
    assert np.array_equal(kept.rows, corpus.vectors[corpus.keys[1]].rows)


def test_vectors_of_another_encoder_are_made_again(
    corpus: HeldTexts, meaning: Meaning
) -> None:
    corpus.encode(meaning, range(4))
    other = Meaning(TextEncoder(lambda texts: [[1.0, 2.0] for _ in texts]), WEIGHTS)
    assert not corpus.has_vectors(0, other)
    corpus.encode(other, range(4))
    assert all(vectors.rows.shape[1] in (0, 2) for vectors in corpus.vectors.values())


def test_encoding_can_be_cancelled(corpus: HeldTexts, meaning: Meaning) -> None:
    with pytest.raises(ScanCancelled):
        choose_texts(
            corpus, "soup", ONE, meaning=lambda: meaning, cancelled=lambda: True
        )


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("vector_rows", np.zeros((3, 4), np.int8)),
        ("vector_rows", np.zeros((6, 4), np.float32)),
        ("vector_rows", np.zeros(6, np.int8)),
        ("vector_scales", np.zeros(3, np.float16)),
        ("vector_counts", np.array([6], np.int64)),
        ("vector_counts", np.array([7, -1, 0, 0], np.int64)),
        ("vector_counts", np.array([2, 2, 1, 0], np.int64)),
    ],
)
def test_misfit_arrays_are_refused(
    corpus: HeldTexts, meaning: Meaning, name: str, array: np.ndarray
) -> None:
    corpus.encode(meaning, range(4))
    arrays = corpus.to_arrays()
    assert HeldTexts.from_arrays(arrays).vectors.keys() == corpus.vectors.keys()
    with pytest.raises(ValueError, match="vectors"):
        HeldTexts.from_arrays(arrays | {name: array})


# Without vectors

NOTES = [f"Note {number}. It rained." for number in range(8)]


def test_the_automatic_bound_is_lower_on_a_cpu(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    tokens = [60_000] * 4
    assert ReadBounds().on(ScorerChoice(scorer=BM25())).within(tokens) == [0, 1, 2]
    assert ReadBounds().on(ScorerChoice(device="cpu")).within(tokens) == [0]
    assert "1 documents of 60000 tokens are read, 3 are left out" in caplog.text
    assert ReadBounds(read_tokens=150_000).on(ScorerChoice(device="cpu")).within(
        tokens
    ) == [0, 1]
    assert ReadBounds(read_tokens=None).on(ScorerChoice(device="cpu")).within(
        tokens
    ) == [
        0,
        1,
        2,
        3,
    ]


def test_texts_without_a_word_of_the_query_come_last() -> None:
    corpus = HeldTexts().with_texts(joined([*NOTES, "A viper sleeps."]))
    assert [number for number, _ in choose_texts(corpus, "viper", ReadBounds(3))] == [
        0,
        1,
        8,
    ]
    assert choose_texts(corpus, "viper", ReadBounds(3))[0] == (0, None)
    assert [number for number, _ in choose_texts(corpus, "xyzzy", ReadBounds(2))] == [
        0,
        1,
    ]


@given(
    st.lists(st.integers(1, 50), max_size=12),
    st.none() | st.integers(1, 6),
    st.none() | st.integers(1, 100),
)
def test_bounds_hold_but_for_the_first(
    tokens: list[int], most: int | None, budget: int | None
) -> None:
    kept = ReadBounds(most, budget).within(tokens)
    assert kept == sorted(set(kept))
    assert kept[:1] == ([0] if tokens else [])
    assert most is None or len(kept) <= most
    total = sum(tokens[number] for number in kept)
    assert budget is None or total <= budget or kept == [0]
    for number in set(range(len(tokens))) - set(
        kept
    ):  # none is left out without a reason
        before = [other for other in kept if other < number]
        full = most is not None and len(before) >= most
        assert full or (
            budget is not None
            and sum(tokens[n] for n in before) + tokens[number] > budget
        )


@given(st.text(max_size=50))
def test_the_estimate_of_tokens(text: str) -> None:
    tokens = estimated_tokens(text)
    assert (tokens == 0) == (not text.strip())
    if tokens:
        n_ascii = sum(ord(character) < 128 for character in text)
        others = sum(
            len(c.encode("utf-8", "surrogatepass")) for c in text if ord(c) >= 128
        )
        assert tokens == (n_ascii + 3) // 4 + others
