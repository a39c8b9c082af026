"""A prepared text as arrays: the same again, or refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_rag import Scanner
from spscanner_rag.checkpoint import ScannerSettings
from spscanner_rag.scan.prepared_arrays import (
    indexed_from_arrays,
    preparation_of,
    prepared_to_arrays,
)
from spscanner_rag.text.segmentation import SentenceSegmenter

TEXT = "Ann signed it. The bell rang \u2014 twice.\n\nNobody\u2019s ship left. "


@settings(deadline=None, max_examples=40)
@given(st.text(alphabet="aB é.\n東京\ud800\u200b-'\"ﬁ!", max_size=80))
def test_arrays_give_a_text_back(tiny_scanner: Scanner, text: str) -> None:
    for content in (text, TEXT + text):
        before = tiny_scanner.reading.index_text(content)
        arrays = prepared_to_arrays(before)
        after = indexed_from_arrays(content, arrays, lexical=True)
        assert list(after.units) == list(before.units)
        for name in ("input_ids", "token_starts", "token_ends", "unit_ends"):
            ours = getattr(after, name)
            theirs = getattr(before, name)
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)
        assert list(after.words.vocabulary) == list(before.words.vocabulary)
        assert dict(after.words.of_stem) == dict(before.words.of_stem)
        for name in ("starts", "ends", "numbers"):
            np.testing.assert_array_equal(
                getattr(after.words, name), getattr(before.words, name)
            )
        for ours, theirs in zip(
            after.words.postings, before.words.postings, strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("input_ids", np.zeros(2, np.int32)),
        ("token_starts", np.zeros(0, np.int32)),
        ("unit_starts", np.array([40, 3, 5], np.int32)),
        ("unit_starts", np.array([-1, 15, 42], np.int32)),
        ("unit_stops", np.array([14, 40, 1000], np.int32)),
        ("unit_ends", np.array([3, 2, 1], np.int32)),
        ("unit_ends", np.array([3, 9, 10_000], np.int32)),
        ("model_text", np.zeros(3, np.uint8)),
        ("model_text", np.full(64, 0xFF, np.uint8)),
        ("model_text_ends", np.array([1, 2], np.int32)),
        ("word_numbers", np.full(11, 99, np.int32)),
        ("word_numbers", np.full(11, -1, np.int32)),
        ("word_starts", np.full(11, 10_000, np.int32)),
        ("word_ends", np.zeros(1, np.int32)),
        ("language", np.frombuffer(b"klingon", np.uint8)),
        ("unit_starts", np.array([0.0, 15.0, 42.0])),
        ("unit_starts", np.zeros((3, 1), np.int32)),
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    tiny_scanner: Scanner, name: str, array: np.ndarray
) -> None:
    arrays = prepared_to_arrays(tiny_scanner.reading.index_text(TEXT))
    with pytest.raises(ValueError, match=r"prepared text|utf-8"):
        indexed_from_arrays(TEXT, arrays | {name: array}, lexical=True)
    del arrays[name]
    with pytest.raises(ValueError, match=f"the prepared text has no {name}"):
        indexed_from_arrays(TEXT, arrays, lexical=True)


def test_the_preparation_is_of_tokenizer_segmenter_and_channel(
    tiny_scanner: Scanner,
) -> None:
    reading = tiny_scanner.reading
    digest = preparation_of(reading)
    assert digest == preparation_of(replace(reading))
    others = [
        replace(reading, segmenter=SentenceSegmenter(max_characters=100)),
        replace(reading, settings=ScannerSettings("reference")),
    ]
    assert digest not in map(preparation_of, others)

    class OfTheCaller(SentenceSegmenter):
        """Cuts as it likes."""

    assert preparation_of(replace(reading, segmenter=OfTheCaller())) is None
