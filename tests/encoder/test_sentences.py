"""Vectors of sentences in their context, by windows of tokens and by the user's embedding objects."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from spscanner_rag.checkpoint.encoder_file import EncoderFile
from spscanner_rag.encoder.sentences import (
    SentenceVectors,
    TextEncoder,
    TokenEncoder,
    TokenizedSentences,
    digest_of,
)
from spscanner_rag.scorers import ScanCancelled

SENTENCES = [
    "the keeper wrote the date . ",
    "he signed the treaty . ",
    "it rained ! ",
    "the bell rang twice . ",
] * 4


@given(arrays(np.float32, (3, 16), elements=st.floats(-10, 10, width=32)))
def test_rounded_vectors_keep_their_cosines(vectors: np.ndarray) -> None:
    question = np.ones(16, np.float32) / 4
    lengths = np.linalg.norm(vectors, axis=1)
    expected = vectors @ question / np.maximum(lengths, 1e-12)
    found = SentenceVectors.of(vectors).cosines(question)
    np.testing.assert_allclose(
        found[lengths > 1e-3], expected[lengths > 1e-3], atol=0.02
    )


def test_a_sentence_alone_is_the_mean_of_its_states(encoder: TokenEncoder) -> None:
    states = (
        encoder.model.states([encoder.enclosed(encoder.ids(SENTENCES[0]))])[1:-1]
        .mean(0)
        .numpy()
    )
    vectors = encoder.vectors(SENTENCES[:1])
    cosine = vectors.cosines(np.asarray(states / np.linalg.norm(states), np.float32))
    assert cosine[0] == pytest.approx(1, abs=0.01)


def test_neighbours_change_a_vector_and_other_texts_do_not(
    encoder: TokenEncoder,
) -> None:
    alone = encoder.vectors(SENTENCES[:1])
    among = encoder.vectors(SENTENCES)
    assert not np.array_equal(alone.rows[0], among.rows[0])
    assert np.array_equal(among.rows, encoder.vectors(SENTENCES).rows)


@pytest.mark.parametrize(
    "sentences",
    [[], [" "], ["\u200b"], ["x" * 100_000], ["\ud800 a"], ["東京 . ", "Москва"]],
)
def test_any_sentence_has_a_vector(encoder: TokenEncoder, sentences: list[str]) -> None:
    vectors = encoder.vectors(sentences)
    cosines = vectors.cosines(encoder.question("who signed the treaty ?"))
    assert len(cosines) == len(sentences)
    assert np.isfinite(cosines).all()


def test_a_long_question_is_cut(encoder: TokenEncoder) -> None:
    assert np.isfinite(encoder.question("who " * 10_000)).all()


def test_steps_are_reported_and_may_end_the_reading(encoder: TokenEncoder) -> None:
    expected, steps = list[int](), list[int]()
    encoder.vectors(SENTENCES * 100, expected.append, steps.append)
    assert len(steps) > 1
    assert [sum(steps)] == expected

    def stop(tokens: int) -> None:
        raise ScanCancelled("enough")

    with pytest.raises(ScanCancelled):
        encoder.vectors(SENTENCES, after_step=stop)


def test_another_tokenizer_is_refused(
    encoder_file: EncoderFile, tiny_tokenizer: object
) -> None:
    with pytest.raises(ValueError, match="tokenizer"):
        encoder_file._replace(tokenizer=tiny_tokenizer).loaded("", "cpu", torch.float32)  # type: ignore[arg-type]


def test_digests_know_where_a_sentence_ends() -> None:
    assert digest_of(["ab", "c"]) != digest_of(["a", "bc"])
    assert digest_of(["ab"]) == digest_of(("ab",))


@given(st.lists(st.integers(0, 70), max_size=60), st.integers(5, 40))
def test_windows_hold_every_token_and_whole_sentences(
    lengths: list[int], most: int
) -> None:
    tokens = TokenizedSentences.of(
        [[number] * length for number, length in enumerate(lengths)]
    )
    windows = tokens.windows(most)
    total = sum(lengths)
    assert {place for start, stop in windows for place in range(start, stop)} == set(
        range(total)
    )
    assert all(0 < stop - start <= most for start, stop in windows)
    assert all(
        later[0] > earlier[0] and later[1] > earlier[1]
        for earlier, later in pairwise(windows)
    )
    boundaries = {0, *tokens.ends.tolist()}
    cut = {place for window in windows for place in window if place not in boundaries}
    # only a sentence that is longer than a window is cut
    assert all(lengths[int(tokens.ids[place])] > most for place in cut)


class Words:
    """A LangChain-like embedder with one dimension for each of a few words.

    It may fail at its n-th call.
    """

    KNOWN = ("treaty", "ship", "bell", "rain")

    def __init__(self, fails_at: int = 0, value: float = 1.0) -> None:
        self.calls, self.fails_at, self.value = list[list[str]](), fails_at, value

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Count words."""
        self.calls.append(list(texts))
        if len(self.calls) == self.fails_at:
            raise ConnectionError("the service is gone")
        return [
            [0.1 + self.value * text.count(word) for word in self.KNOWN]
            for text in texts
        ]

    def embed_query(self, text: str) -> list[float]:
        """The same for one text."""
        return [0.1 + self.value * text.count(word) for word in self.KNOWN]


def test_a_sentence_is_itself_and_its_context() -> None:
    encoder = TextEncoder(Words())
    cosines = encoder.vectors(["the treaty. ", "a bell. ", "rain"]).cosines(
        encoder.question("which treaty?")
    )
    assert cosines.argmax() == 0
    assert cosines[1] > TextEncoder(Words()).question("bell") @ encoder.question(
        "treaty"
    )


def test_nothing_is_embedded_twice_after_a_failure() -> None:
    words = Words(fails_at=2)
    encoder = TextEncoder(words)
    sentences = [f"treaty number {number}. " for number in range(100)]
    with pytest.raises(ConnectionError):
        encoder.vectors(sentences)
    vectors = encoder.vectors(sentences)
    assert len(vectors.rows) == 100
    asked = [
        text for number, call in enumerate(words.calls) if number != 1 for text in call
    ]
    assert len(asked) == len(set(asked))


def test_what_is_not_finite_is_refused_with_its_text() -> None:
    encoder = TextEncoder(Words(value=float("nan")))
    with pytest.raises(ValueError, match=r"NaN or infinity.*treaty"):
        encoder.vectors(["the treaty"])


def test_other_objects_are_refused() -> None:
    with pytest.raises(
        TypeError, match=r"embedder is int; expected a model name.*LangChain"
    ):
        TextEncoder(3)


def test_names_tell_embedders_apart() -> None:
    assert TextEncoder(Words()).digest == TextEncoder(Words()).digest
    assert TextEncoder(Words()).digest != TextEncoder(np.asarray).digest
