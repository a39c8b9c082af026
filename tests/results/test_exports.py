"""Results as dictionaries, JSON and data frames."""

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.results import ScanResult

HOSTILE = "Lone \ud800, \x1b[31m and </script>."


def result_of(logits: list[float]) -> ScanResult:
    sentences = [f"{HOSTILE} {number}" for number in range(len(logits))]
    starts = [number * (len(HOSTILE) + 5) for number in range(len(logits))]
    text = "".join(sentence.ljust(len(HOSTILE) + 5) for sentence in sentences)
    ends = [start + len(sentence) for start, sentence in zip(starts, sentences, strict=True)]
    return ScanResult("Who \ud800?", text, starts, ends, logits, tokens_read=9)  # type: ignore[arg-type]


LOGITS = st.lists(st.floats(-30, 30, width=32), max_size=8)


@given(LOGITS)
def test_json_gives_back_every_sentence(logits: list[float]) -> None:
    result = result_of(logits)
    written = result.to_json()
    assert written.isascii()
    assert json.loads(written) == result.to_dict()
    assert {name: value for name, value in result.to_dict().items() if name != "sentences"} == {
        "query": "Who \ud800?",
        "characters": len(result.text),
        "tokens_read": 9,
    }
    for described, sentence in zip(result.to_dict()["sentences"], result.sentences, strict=True):
        assert result.text[described["start"] : described["end"]] == described["text"] == sentence.text
        assert (described["score"], described["logit"]) == (sentence.score, sentence.logit)
    assert "\n" in result.to_json(indent=1)


def test_a_data_frame_has_a_row_for_each_sentence() -> None:
    pytest.importorskip("pandas")
    result = result_of([1.0, 3.0, -2.0, 3.0])
    frame = result.to_pandas()
    assert list(frame.columns) == ["text", "start", "end", "logit", "score", "rank"]
    assert frame["text"].tolist() == [sentence.text for sentence in result.sentences]
    assert frame["rank"].tolist() == [3, 1, 4, 2]
    assert frame["score"].tolist() == result.scores.tolist()
    assert frame.attrs["tokens_read"] == 9
    frame.loc[0, "logit"] = 9.0  # a copy: the result stays as it was
    assert result.logits[0] == 1.0
    assert result_of([]).to_pandas().empty


def test_without_pandas_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r'pip install "spscanner-rag\[pandas\]"'):
        result_of([1.0]).to_pandas()
