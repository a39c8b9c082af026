from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_rag.baselines.base import segmenter_of
from spscanner_rag.text.segmentation import SentenceSegmenter

UNITS = ["chunk:1", "chunk:3", "chunk", "passage", "document"]
TEXTS = st.text(st.sampled_from("ab.\n\r\t \u00a0\u2028é\ud800🦦"), max_size=60)


@settings(max_examples=100, deadline=None)
@given(TEXTS, st.sampled_from(UNITS))
def test_units_are_the_text(text: str, unit: Any) -> None:
    units = segmenter_of(unit).segment(text)
    assert "".join(unit.model_text for unit in units) == (text if text.strip() else "")
    end = 0
    for unit in units:
        assert end <= unit.start < unit.end <= len(text)
        assert not text[end : unit.start].strip()
        assert text[unit.start : unit.end] == text[unit.start : unit.end].strip()
        end = unit.end
    assert not text[end:].strip()


def test_passages_end_at_blank_lines() -> None:
    text = "One\nline. \n\n Two. \r\n\t\r\nThree."
    passages = [text[unit.start : unit.end] for unit in segmenter_of("passage").segment(text)]
    assert passages == ["One\nline.", "Two.", "Three."]


@pytest.mark.parametrize(
    ("unit", "units"),
    [("chunk:1", 5), ("chunk:2", 3), ("chunk:300", 1), ("chunk", 1), ("document", 1), ("sentence", 1)],
)
def test_chunks_of_so_many_words(unit: Any, units: int) -> None:
    segmenter = segmenter_of(unit)
    assert len(segmenter.segment("one two  three\nfour five")) == units
    assert segmenter.name == ("chunk" if unit == "chunk:300" else unit)
    assert segmenter_of(segmenter) is segmenter
    assert isinstance(segmenter, SentenceSegmenter) == (unit == "sentence")


@pytest.mark.parametrize(
    ("unit", "message"),
    [
        ("page", "expected one of sentence, chunk, passage, document, chunk:WORDS"),
        ("chunk:0", "expected one of"),
        ("chunk:-1", "expected one of"),
        ("chunk:many", "expected one of"),
        ("chunk:99999999", "expected one of"),
    ],
)
def test_unknown_units_are_refused(unit: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        segmenter_of(unit)
