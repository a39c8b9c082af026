"""A result in a notebook: escaped, self-contained, and bounded in size."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.results import ScanResult
from spscanner_rag.results.notebook import BEST
from spscanner_rag.text.escaping import visible

HOSTILE = "<script>alert(1)</script> <img src=x onerror=alert(2)> </mark></div> \x1b[31m \u202e \ud800 &lt;"


def result_of(sentences: list[str], *, query: str = "Who?", seed: int = 0) -> ScanResult:
    text, starts = "", []
    for sentence in sentences:
        starts.append(len(text))
        text += f"{sentence}\n"
    ends = [start + len(sentence) for start, sentence in zip(starts, sentences, strict=True)]
    logits = np.random.default_rng(seed).normal(-3, 2, len(sentences))
    return ScanResult(query, text, starts, ends, logits, tokens_read=7)  # type: ignore[arg-type]


class Shown(HTMLParser):
    """The tags, the attributes, and the highlighted texts by rank."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.marks: dict[str, str] = {}
        self.text = ""
        self._rank = ""
        self.feed(markup)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1] == "b" and data.isdigit():
            self._rank = data
            return
        self.text += data
        if "mark" in self.open:
            self.marks[self._rank] = self.marks.get(self._rank, "") + data


@given(st.lists(st.sampled_from([HOSTILE, "Plain words.", "שלום", "a\r\nb"]), min_size=1, max_size=20))
def test_the_best_sentences_are_highlighted_and_nothing_acts(sentences: list[str]) -> None:
    result = result_of(sentences, query=HOSTILE)
    shown = Shown(result._repr_html_())
    assert shown.tags <= set("div svg path b mark code i".split())
    assert shown.attributes <= set(
        "style dir title viewbox preserveaspectratio role aria-label d fill".split()
    )
    best = sorted(result.sentences, key=lambda sentence: -sentence.logit)[:BEST]
    assert shown.marks == {str(rank): visible(own.text) for rank, own in enumerate(best, start=1)}
    assert visible(result.text) in shown.text
    assert f"{best[0].score:.3f}: {visible(best[0].text)}" in shown.text
    assert "url(" not in result._repr_html_()


def test_a_long_document_is_left_out_between_its_best_sentences() -> None:
    result = result_of([f"Sentence number {number} stands here." for number in range(30_000)])
    assert len(result.text) > 1_000_000
    markup = result._repr_html_()
    assert len(markup) < 40_000
    left_out = [int(number.replace(",", "")) for number in re.findall(r"… ([\d,]+) characters …", markup)]
    assert sum(left_out) > 0.99 * len(result.text)
    assert len(Shown(markup).marks) == BEST


def test_one_endless_sentence_is_cut() -> None:
    assert len(result_of(["\x1b" * 3_000_000], query="q" * 100_000)._repr_html_()) < 80_000


def test_a_document_without_a_sentence() -> None:
    shown = Shown(ScanResult("Who?", " \n", [], [], [])._repr_html_())  # type: ignore[arg-type]
    assert "no sentence to score" in shown.text


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 9), st.floats(-5, 5, width=32)), max_size=20),
    st.integers(1, 50),
)
def test_the_profile_has_the_best_score_of_parts(sentences: list[tuple[int, int, float]], parts: int) -> None:
    starts, ends, place = [], [], 0
    for length, gap, _ in sentences:
        starts.append(place + gap)
        ends.append(place + gap + length)
        place = ends[-1]
    characters = place + 3
    logits = [logit for *_, logit in sentences]
    result = ScanResult("q", "x" * characters, starts, ends, logits)  # type: ignore[arg-type]
    expected = [0.0] * parts
    for start, end, score in zip(starts, ends, result.scores.tolist(), strict=True):
        for part in {character * parts // characters for character in range(start, end)}:
            expected[part] = max(expected[part], score)
    if parts <= characters:  # else a character is wider than a part
        assert result.profile(parts).tolist() == pytest.approx(expected)
