"""Arrays of prepared texts, end to end."""

import json
from typing import Any

import numpy as np
import pytest

from spscanner_rag.retrieval.stored_texts import StoredTexts

TEXTS = {
    "a": {"ids": np.array([3, 4], np.int32), "text": np.frombuffer(b"xyz", np.uint8)},
    "b": {"ids": np.zeros(0, np.int32), "text": np.frombuffer(b"", np.uint8)},
    "c": {"ids": np.array([5], np.int32), "text": np.frombuffer(b"q", np.uint8)},
}


def test_each_text_has_its_arrays_again() -> None:
    stored = StoredTexts.from_arrays(StoredTexts.of("digest", TEXTS).to_arrays())
    for key, arrays in TEXTS.items():
        restored = stored.arrays_of(key, "digest")
        assert restored is not None
        assert restored.keys() == arrays.keys()
        for name, array in arrays.items():
            assert restored[name].dtype == array.dtype
            np.testing.assert_array_equal(restored[name], array)


def test_what_is_of_another_scorer_or_unknown_is_not_stored() -> None:
    stored = StoredTexts.of("digest", TEXTS)
    assert stored.arrays_of("a", "another") is None
    assert stored.arrays_of("a", None) is None
    assert stored.arrays_of("d", "digest") is None
    assert StoredTexts().to_arrays() == {}
    assert StoredTexts.from_arrays({}).arrays_of("a", "") is None


def contents(*values: Any) -> np.ndarray:
    return np.frombuffer(json.dumps(list(values)).encode(), np.uint8)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("prepared_contents", np.frombuffer(b"{", np.uint8)),
        ("prepared_contents", contents("digest", ["ids", "text"])),
        ("prepared_contents", contents("digest", ["ids", "text"], ["a", "b"])),
        ("prepared_contents", contents("digest", ["ids", "text"], ["a", "b", "a"])),
        ("prepared_contents", contents("digest", ["ids", "text"], ["a", "b", 3])),
        ("prepared_contents", contents("digest", ["ids", "other"], ["a", "b", "c"])),
        ("prepared_contents", contents("digest", "ids", ["a", "b", "c"])),
        ("prepared_contents", contents(3, ["ids", "text"], ["a", "b", "c"])),
        ("prepared_stops", np.zeros((2, 4), np.float64)),
        ("prepared_stops", np.zeros((2, 4), np.int64)),
        ("prepared_stops", np.array([[0, 5, 2, 3], [0, 3, 3, 4]])),
        ("prepared_ids", np.zeros((3, 1), np.int32)),
        ("prepared_ids", np.zeros(2, np.int32)),
    ],
)
def test_arrays_that_do_not_fit_are_refused(name: str, array: np.ndarray) -> None:
    arrays = StoredTexts.of("digest", TEXTS).to_arrays()
    with pytest.raises(ValueError, match=r"prepared texts|Expecting"):
        StoredTexts.from_arrays(arrays | {name: array})
    del arrays[name]
    if name != "prepared_contents":
        with pytest.raises(ValueError, match="prepared texts"):
            StoredTexts.from_arrays(arrays)
