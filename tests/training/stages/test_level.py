import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.results.selection import sigmoid
from spscanner_rag.training.stages.level import fitted_shift

SENTENCES = st.lists(st.tuples(st.floats(-20, 20), st.booleans()), min_size=2, max_size=40).filter(
    lambda sentences: len({relevant for _, relevant in sentences}) == 2
)


@given(sentences=SENTENCES, weight=st.floats(0.1, 20))
def test_the_probabilities_add_up_to_the_relevant_sentences(
    sentences: list[tuple[float, bool]], weight: float
) -> None:
    logits = np.array([logit for logit, _ in sentences])
    relevant = np.array([mark for _, mark in sentences])
    weights = np.where(relevant, weight, 1.0)
    shift = fitted_shift(logits, relevant, weight)
    assert (weights * sigmoid(logits + shift)).sum() == pytest.approx(weights[relevant].sum(), rel=1e-6)


@given(sentences=SENTENCES, by=st.floats(-10, 10))
def test_a_base_that_is_lower_by_so_much_is_shifted_by_so_much_more(
    sentences: list[tuple[float, bool]], by: float
) -> None:
    logits = np.array([logit for logit, _ in sentences])
    relevant = np.array([mark for _, mark in sentences])
    higher, lower = fitted_shift(logits, relevant, 5.0), fitted_shift(logits - by, relevant, 5.0)
    assert lower - higher == pytest.approx(by, abs=1e-6)


@pytest.mark.parametrize(
    ("marks", "weight"), [([False, False], 5.0), ([True, True], 5.0), ([True, False], 0.0)]
)
def test_sentences_of_one_kind_have_no_level(marks: list[bool], weight: float) -> None:
    assert fitted_shift(np.array([1.0, -2.0]), np.array(marks), weight) == 0.0
