"""An encoder with its weights: pickled, scaled, and refusing other vectors."""

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from spscanner_rag.encoder.meaning import Meaning
from spscanner_rag.encoder.meaning_weights import MeaningWeights
from spscanner_rag.encoder.token_encoder import TokenEncoder
from spscanner_rag.encoder.unrelated import unrelated_cosines

SENTENCES = ["the keeper wrote the date . ", "he signed the treaty . ", "it rained ! "]
WEIGHTS = MeaningWeights(scanner=0.5, sentence=10, near=2, wide=1, bias=-3)


def test_a_pickle_keeps_no_vectors(encoder: TokenEncoder) -> None:
    meaning = Meaning(encoder, WEIGHTS, weighed=False)
    meaning.vectors(SENTENCES)
    copy = pickle.loads(pickle.dumps(Meaning(PlainEncoder(), WEIGHTS, weighed=False)))
    assert (copy.weights, copy.weighed, copy.has_vectors(SENTENCES)) == (
        WEIGHTS,
        False,
        False,
    )


def test_another_encoder_is_scaled_to_the_one_that_was_weighed(
    encoder: TokenEncoder,
) -> None:
    mean, deviation = unrelated_cosines(encoder)
    own = Meaning(encoder, WEIGHTS)
    vectors = own.vectors(SENTENCES)
    cosines = own.cosines("who signed the treaty ?", vectors)
    same = Meaning(
        encoder, replace(WEIGHTS, mean=mean, deviation=deviation), weighed=False
    )
    np.testing.assert_allclose(
        same.cosines("who signed the treaty ?", vectors), cosines, atol=1e-5
    )
    wider = Meaning(
        encoder, replace(WEIGHTS, mean=0.0, deviation=2 * deviation), weighed=False
    )
    found = wider.cosines("who signed the treaty ?", vectors)
    np.testing.assert_allclose(found, 2 * (cosines - mean), atol=1e-5)


def test_vectors_of_another_width_are_refused(encoder: TokenEncoder) -> None:
    vectors = Meaning(encoder, WEIGHTS).vectors(SENTENCES)
    with pytest.raises(ValueError, match="one kind"):
        Meaning(PlainEncoder(), WEIGHTS).cosines("who?", vectors)


class PlainEncoder:
    """An encoder that can be pickled; its question vectors have three numbers."""

    digest = "plain"

    def question(self, query: str) -> np.ndarray:
        """The same vector for any question."""
        return np.ones(3, np.float32)

    def vectors(self, *arguments: Any) -> Any:
        """Not used."""
        raise NotImplementedError
