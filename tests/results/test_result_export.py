"""A result as JSON, as a data frame and in a notebook."""

import html
import json
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag import ScanResult
from spscanner_rag.text.escaping import visible
from tests.fakes import result_of

HOSTILE = "Lone \ud800, \x1b[31m and </script>."


def hostile(logits: list[float]) -> ScanResult:
    sentences = [f"{HOSTILE} {number}" for number in range(len(logits))]
    return result_of(sentences, logits, "  ", query="Who \ud800?", tokens_read=9)


LOGITS = st.lists(st.floats(-30, 30, width=32), max_size=8)


@given(LOGITS)
def test_json_gives_back_every_sentence(logits: list[float]) -> None:
    result = hostile(logits)
    written = result.to_json()
    assert written.isascii()
    assert json.loads(written) == result.to_dict()
    assert json.loads(result.to_json(offsets="bytes")) == result.to_dict("bytes")
    assert {
        name: value for name, value in result.to_dict().items() if name != "sentences"
    } == {
        "query": "Who \ud800?",
        "characters": len(result.text),
        "n_tokens": None,
        "tokens_read": 9,
        "answerable": None,
        "encoder": None,
    }
    for described, sentence in zip(
        result.to_dict()["sentences"], result.sentences, strict=True
    ):
        assert (
            result.text[described["start"] : described["end"]]
            == described["text"]
            == sentence.text
        )
        assert (described["score"], described["logit"]) == (
            sentence.score,
            sentence.logit,
        )
    assert "\n" in result.to_json(indent=1)


def test_a_data_frame_has_a_row_for_each_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("pandas")
    result = hostile([1.0, 3.0, -2.0, 3.0])
    frame = result.to_pandas()
    assert list(frame.columns) == ["text", "start", "end", "logit", "score", "rank"]
    assert frame["text"].tolist() == [sentence.text for sentence in result.sentences]
    assert frame["rank"].tolist() == [3, 1, 4, 2]
    frame.loc[0, "logit"] = 9.0  # a copy: the result is unchanged
    assert result.logits[0] == 1.0
    assert hostile([]).to_pandas().empty
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r'pip install "\.\[pandas\]"'):
        result.to_pandas()


def test_a_notebook_shows_the_best_sentences_and_nothing_acts() -> None:
    sentences = [
        f"{number} <script>alert(1)</script> \x1b[31m \ud800 &lt;"
        for number in range(30)
    ]
    result = result_of(sentences, range(30), "\n", query=sentences[0], tokens_read=7)
    page = result._repr_html_()
    assert set(re.findall(r"<(\w+)[^>]*>", page)) == {
        "div",
        "b",
        "ol",
        "li",
        "i",
        "code",
    }
    assert {*re.findall(r'([\w-]+)="', page)} == {"style", "dir"}
    best = result.select(10, order="score")
    text = html.unescape(re.sub(r"<[^>]*>", "", page))
    assert all(
        f"{one.score:.3f} {visible(one.text)} {one.cite()}" in text for one in best
    )
    assert visible(sentences[19]) not in text
    assert "30 sentences · 7 tokens read" in text
    assert (
        len(result_of(["\x1b" * 100_000], [0], query="q" * 100_000)._repr_html_())
        < 20_000
    )
    assert "0 sentences" in result_of([], [])._repr_html_()
