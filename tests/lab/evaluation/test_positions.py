"""Recall by place in the document and by its length."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_rag.lab.evaluation.positions import (
    LENGTH_EDGES,
    length_samples,
    position_bins,
    position_samples,
    recall_by_position,
)
from spscanner_rag.lab.evaluation.statistics import Sample
from spscanner_rag.results.coverage import Spans


def spans(*pairs: tuple[int, int]) -> Spans:
    starts, ends = np.array(pairs, np.int64).reshape(-1, 2).T
    return Spans(starts, ends)


def test_a_sentence_stands_where_its_middle_is() -> None:
    sentences = spans((0, 1), (0, 20), (0, 19), (80, 99), (80, 100), (95, 100), (0, 100))
    assert position_bins(sentences, 100).tolist() == [0, 1, 0, 8, 9, 9, 5]


@settings(max_examples=60)
@given(st.integers(1, 10**7), st.integers(1, 20), st.data())
def test_bins_equal_fractions(characters: int, bins: int, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, characters - 1))
    end = data.draw(st.integers(start + 1, characters))
    (place,) = position_bins(spans((start, end)), characters, bins).tolist()
    # in whole numbers: place / bins <= middle / characters < (place + 1) / bins
    assert 0 <= place < bins
    assert place * 2 * characters <= (start + end) * bins < (place + 1) * 2 * characters


def test_recall_by_position() -> None:
    sentences, found = spans((0, 4), (5, 9), (90, 100)), np.array([True, False, True])
    recalls = recall_by_position(sentences, found, 100)
    assert recalls[[0, 9]].tolist() == [0.5, 1.0]
    assert np.isnan(recalls[1:9]).all()
    assert recall_by_position(sentences, found, 100, bins=1).tolist() == [pytest.approx(2 / 3)]


def test_questions_gathered_by_position() -> None:
    recalls = [np.array([0.5, np.nan, np.nan]), np.array([1.0, 0.0, np.nan])]
    samples = position_samples(recalls, ["a", "b"])
    assert list(samples) == [0, 1]
    first, second = samples.values()
    assert (first.values.tolist(), first.documents) == ([0.5, 1.0], ("a", "b"))
    assert (second.values.tolist(), second.documents) == ([0.0], ("b",))
    assert position_samples([], []) == {}


def test_questions_gathered_by_length() -> None:
    sample = Sample([0.0, 0.25, 0.5, 1.0], ["a", "b", "b", "c"])
    found = length_samples(sample, [9999, 10_000, 10_000, 10**6])
    assert list(found) == [0, 10_000, LENGTH_EDGES[-1]]
    assert found[10_000].values.tolist() == [0.25, 0.5]
    assert found[10_000].documents == ("b", "b")
    assert list(length_samples(sample, [5, 5, 5, 7], (5,))) == [5]


@settings(max_examples=40)
@given(st.lists(st.integers(0, 200_000), min_size=1, max_size=30))
def test_every_question_is_in_the_bin_of_its_length(lengths: list[int]) -> None:
    found = length_samples(Sample(np.array(lengths, float), ["d"] * len(lengths)), lengths)
    assert sorted(value for sample in found.values() for value in sample.values) == sorted(lengths)
    beyond = dict(itertools.pairwise([*LENGTH_EDGES, math.inf]))
    for low, sample in found.items():
        assert all(low <= value < beyond[low] for value in sample.values)


def test_errors() -> None:
    with pytest.raises(ValueError, match="got 0 bins"):
        position_bins(spans((0, 1)), 5, 0)
    for span in ((0, 6), (3, 3), (-1, 2)):
        with pytest.raises(ValueError, match="in a document of 5 characters"):
            position_bins(spans(span), 5)
    with pytest.raises(ValueError, match="got 2 marks for 1 evidence sentences"):
        recall_by_position(spans((0, 1)), np.ones(2, bool), 5)
    with pytest.raises(ValueError, match="1 questions and 2 documents"):
        position_samples([np.zeros(3)], ["a", "b"])
    with pytest.raises(ValueError, match="different numbers of bins"):
        position_samples([np.zeros(3), np.zeros(4)], ["a", "b"])
    sample = Sample([0.5], ["a"])
    with pytest.raises(ValueError, match="got 2 lengths for 1 questions"):
        length_samples(sample, [1, 2])
    for edges in ((), (0, 0), (5, 2)):
        with pytest.raises(ValueError, match="expected at least one, ascending"):
            length_samples(sample, [7], edges)
    with pytest.raises(ValueError, match="a document of length 7; expected at least 10"):
        length_samples(sample, [7], (10, 20))
