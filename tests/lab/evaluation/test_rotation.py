"""Documents rotated at sentence ends: nothing is lost, and the evidence is where it should be; rows and table."""

import itertools
from collections import Counter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from spscanner_rag.lab.evaluation.records import Record
from spscanner_rag.lab.evaluation.rotation import (
    JOINER,
    TENTHS,
    Rotation,
    cuts_for,
    rotatable,
    rotate,
    rotated,
    rotation_rows,
    rotation_table,
)
from spscanner_rag.lab.evaluation.rows import rows_of
from spscanner_rag.lab.evaluation.settings import Setting
from spscanner_rag.lab.evidence.questions import Document, Question
from spscanner_rag.lab.evidence.sampling import Asked
from spscanner_rag.results.coverage import Spans
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.units import Unit

PROSE = [f"On day {number} of the walk an otter crossed the road slowly." for number in range(40)]
TEXT = " ".join(PROSE)
UNITS = SentenceSegmenter().segment(TEXT)

texts = st.text(st.sampled_from('ab .\n!?"(é\u2028\ud800'), max_size=60) | st.lists(
    st.sampled_from([*PROSE[:4], "Why?", "No.", "\n", "  "]), max_size=14
).map(" ".join)


def spans_of(text: str) -> st.SearchStrategy[list[tuple[int, int]]]:
    place = st.integers(0, len(text))
    pair = st.tuples(place, place).map(sorted).filter(lambda span: span[0] < span[1])
    return st.lists(pair.map(lambda span: (span[0], span[1])), max_size=4)


def question(*evidence: tuple[int, int], qid: str = "q") -> Question:
    return Question(qid, "Where?", evidence)


def document(*questions: Question, text: str = TEXT) -> Document:
    return Document("d", "walks", "", text, questions)


# A rotation


@given(st.data())
def test_a_span_that_is_not_torn_keeps_its_text(data: st.DataObject) -> None:
    text = data.draw(texts)
    rotation = Rotation(text, data.draw(st.integers(0, len(text))))
    for start, end in data.draw(spans_of(text)) if text else []:
        if start < rotation.cut < end:
            with pytest.raises(ValueError, match=f"the cut {rotation.cut} splits the span"):
                rotation.span(start, end)
        else:
            moved = rotation.span(start, end)
            assert rotation.rotated[slice(*moved)] == text[start:end]


@given(st.data())
def test_all_sentences_are_there_once(data: st.DataObject) -> None:
    text = data.draw(texts)
    units = SentenceSegmenter().segment(text)
    assume(units)
    rotation = Rotation(text, data.draw(st.sampled_from([unit.start for unit in units])))
    moved = rotation.units(units)
    assert Counter(rotation.rotated[u.start : u.end] for u in moved) == Counter(
        text[u.start : u.end] for u in units
    )
    assert "".join(unit.model_text for unit in moved) == rotation.rotated
    for unit, following in itertools.pairwise(moved):
        assert unit.end <= following.start
        assert unit.model_text == rotation.rotated[unit.start : following.start] or unit is moved[0]
    assert rotation.rotated.startswith(moved[0].model_text)


def test_by_hand() -> None:
    rotation = Rotation("One. Two. Three.", 5)
    assert rotation.rotated == f"Two. Three.{JOINER}One. "
    assert rotation.span(0, 4) == (13, 17)
    assert rotation.span(5, 9) == (0, 4)
    assert rotation.units([Unit(0, 4, "One. "), Unit(5, 9, "Two. "), Unit(10, 16, "Three.")]) == [
        Unit(0, 4, "Two. "),
        Unit(5, 11, f"Three.{JOINER}"),
        Unit(13, 17, "One. "),
    ]


@pytest.mark.parametrize("cut", [0, 16])
def test_a_cut_at_an_end_changes_nothing(cut: int) -> None:
    rotation = Rotation("One. Two. Three.", cut)
    assert rotation.rotated == "One. Two. Three."
    assert rotation.span(5, 9) == (5, 9)


def test_a_segmenter_finds_the_same_sentences() -> None:
    for cut in (UNITS[1].start, UNITS[17].start):
        rotation = Rotation(TEXT, cut)
        assert SentenceSegmenter().segment(rotation.rotated) == rotation.units(UNITS)


# The place of the cut


@given(st.data())
def test_evidence_lies_in_the_first_and_in_the_last_part(data: st.DataObject) -> None:
    text = data.draw(texts.filter(lambda text: bool(text.strip())))
    units = SentenceSegmenter().segment(text)
    evidence = data.draw(spans_of(text))
    relevant = [u for u in units if any(u.start < end and start < u.end for start, end in evidence)]
    assume(relevant)
    parts = data.draw(st.integers(2, 5))
    cuts = cuts_for(Spans.of(units), evidence, len(text), parts)
    possible = [set(_possible(text, units, relevant, evidence, parts, last)) for last in (False, True)]
    if cuts is None:
        assert not all(possible)
        return
    assert cuts[0] in possible[0]
    assert cuts[1] in possible[1]


def _possible(
    text: str,
    units: list[Unit],
    relevant: list[Unit],
    evidence: list[tuple[int, int]],
    parts: int,
    last: bool,
) -> list[int]:
    """All cuts that do, by trying them with the rotation itself."""
    found = []
    for cut in (unit.start for unit in units):
        if any(start < cut < end for start, end in evidence):
            continue
        rotation = Rotation(text, cut)
        spans = [rotation.span(unit.start, unit.end) for unit in relevant]
        length = len(rotation.rotated)
        if last and min(start for start, _ in spans) * parts >= (parts - 1) * length:
            found.append(cut)
        if not last and max(end for _, end in spans) * parts <= length:
            found.append(cut)
    return found


@pytest.mark.parametrize("number", [0, 1, 20, 38, 39])
def test_near_the_middle_of_the_tenth(number: int) -> None:
    unit = UNITS[number]
    cuts = cuts_for(Spans.of(UNITS), [(unit.start + 3, unit.start + 8)], len(TEXT))
    assert cuts is not None
    for cut, place in zip(cuts, (0.05, 0.95), strict=True):
        rotation = Rotation(TEXT, cut)
        start, end = rotation.span(unit.start, unit.end)
        assert (start + end) / 2 / len(rotation.rotated) == pytest.approx(place, abs=0.014)  # half a sentence


def test_evidence_at_both_ends_of_the_document_stands_together() -> None:
    evidence = [(UNITS[0].start, UNITS[0].end), (UNITS[39].start, UNITS[39].end)]
    cuts = cuts_for(Spans.of(UNITS), evidence, len(TEXT))
    assert cuts is not None
    assert 0 not in cuts


def test_evidence_that_spreads_too_far() -> None:
    units = Spans.of(UNITS)
    assert cuts_for(units, [(UNITS[3].start, UNITS[7].end)], len(TEXT)) is None  # five of forty
    assert cuts_for(units, [(UNITS[3].start, UNITS[5].end)], len(TEXT)) is not None
    assert (
        cuts_for(units, [(UNITS[3].start, UNITS[3].end), (UNITS[20].start, UNITS[20].end)], len(TEXT)) is None
    )
    assert cuts_for(units, [(0, len(TEXT))], len(TEXT)) is None


def test_no_cut_inside_evidence_of_several_sentences() -> None:
    text = " ".join(PROSE[:4])
    units = SentenceSegmenter().segment(text)
    evidence = [(units[0].start, units[3].end)]  # every start of a sentence but the first is inside
    assert cuts_for(Spans.of(units), evidence, len(text), 2) is None


def test_no_cut_between_the_space_of_evidence_and_its_sentence() -> None:
    # in a thirtieth of the text one sentence has room, and only if the cut is right before it
    unit, units = UNITS[5], Spans.of(UNITS)
    assert cuts_for(units, [(unit.start, unit.end)], len(TEXT), 30) == (unit.start, UNITS[6].start)
    assert cuts_for(units, [(unit.start - 1, unit.end)], len(TEXT), 30) is None


def test_evidence_of_white_space_has_no_cut() -> None:
    assert cuts_for(Spans.of(UNITS), [(UNITS[0].end, UNITS[1].start)], len(TEXT)) is None


# Documents and questions


def test_a_document_is_rotated_with_its_question() -> None:
    asked = question((UNITS[4].start, UNITS[4].end), (UNITS[6].start, UNITS[6].start + 2))
    corpus = rotate(document(asked), asked, UNITS, UNITS[5].start)
    ((turned, moved),) = corpus.asked
    text = turned.text
    assert [text[start:end] for start, end in moved.evidence] == [PROSE[4], "On"]
    assert (moved.qid, moved.text, turned.doc_id) == ("q", "Where?", "d")
    assert [text[unit.start : unit.end] for unit in corpus.units("sentence").units(0)] == PROSE[5:] + PROSE[
        :5
    ]


def test_both_tenths() -> None:
    near, far = question((10, 20), qid="near"), question((UNITS[30].start, UNITS[30].end), qid="far")
    given = document(near, far)
    for tenth, part in zip(TENTHS, (0, 9), strict=True):
        found = [corpus.asked[0] for corpus in rotated({"walks": [(given, near), (given, far)]}, tenth)]
        assert [asked.qid for _, asked in found] == ["near", "far"]
        for turned, asked in found:
            ((start, end),) = asked.evidence
            assert start * 10 // len(turned.text) == (end - 1) * 10 // len(turned.text) == part


def test_questions_that_cannot_be_rotated_are_left_out() -> None:
    kept, wide = question((10, 20), qid="kept"), question((0, len(TEXT)), qid="wide")
    blank = question((UNITS[0].end, UNITS[1].start), qid="blank")
    one, other = document(kept, wide, blank), document(wide)
    asked = {"walks": [(one, wide), (one, kept), (one, blank)], "roads": [(other, wide)]}
    assert rotatable(asked) == {"walks": [(one, kept)]}
    with pytest.raises(ValueError, match="none of 1 questions has all of its evidence within a tenth"):
        rotatable({"roads": [(other, wide)]})


# Rows and table

SETTING = Setting("bm25", "chunk")
FIRST, LAST = SETTING.varied("first tenth"), SETTING.varied("last tenth")
RECALLS = {  # of the first and the last tenth
    ("a", "d1", "q1"): (1.0, 1.0),
    ("a", "d2", "q2"): (1.0, 0.5),
    ("b", "d3", "q3"): (0.5, 0.25),
    ("c", "d4", "q4"): (0.0, 1.0),
}


def record(setting: Setting, source: str, doc: str, qid: str, recall: float) -> Record:
    return Record(
        *setting.key, source, "dev", doc, qid, 900, {"recall@10": recall}, {"10": 9}, {"10": [recall] * 10}
    )


RECORDS = [
    record(setting, *key, recall)
    for key, both in RECALLS.items()
    for setting, recall in zip((FIRST, LAST), both, strict=True)
]


def asked_of(*more: tuple[str, str, str]) -> dict[str, list[Asked]]:
    found: dict[str, list[Asked]] = {}
    for source, doc, qid in [*RECALLS, *more]:
        pair = Document(doc, source, "", "text", (), "dev"), Question(qid, "?", ((0, 1),))
        found.setdefault(source, []).append(pair)
    return found


ROWS = rotation_rows(RECORDS, [SETTING], asked_of(("a", "d1", "q9"), ("e", "d5", "q5")), asked_of())


def test_ratios_of_recalls() -> None:
    ratios = {row["source"]: row for row in ROWS if row["metric"] == "recall_last_over_first"}
    assert list(ratios) == ["a", "b", "macro", "micro"]  # the recall of c in the first tenth is 0
    assert ratios["a"]["value"] == 0.75
    assert ratios["b"]["value"] == 0.5
    assert ratios["macro"]["value"] == pytest.approx((0.75 + 0.25 + 1) / (1 + 0.5))
    assert ratios["micro"]["value"] == pytest.approx(2.75 / 2.5)
    assert ratios["a"]["ci_low"] == 0.5
    assert ratios["a"]["ci_high"] == 1
    assert {row["k"] for row in ratios.values()} == {10}
    assert {(row["retriever"], row["unit"], row["split"]) for row in ROWS} == {("bm25", "chunk", "dev")}
    assert (ratios["macro"]["questions"], ratios["macro"]["documents"]) == (4, 4)


def test_what_is_left_out() -> None:
    left_out = {row["source"]: row for row in ROWS if row["metric"] == "left_out"}
    assert {source: row["value"] for source, row in left_out.items()} == {
        "a": pytest.approx(1 / 3),
        "b": 0,
        "c": 0,
        "e": 1,
        "micro": pytest.approx(2 / 6),
    }
    assert (left_out["a"]["questions"], left_out["a"]["documents"]) == (3, 2)


def test_the_table_of_rotations() -> None:
    rows = rows_of(RECORDS, [FIRST, LAST])
    table = rotation_table([*rows, *ROWS], [SETTING])
    cells = {line[0]: line[1:] for line in table.body}
    assert cells["a"] == ["bm25, chunks", "2 (1)", "100.0", "75.0", "75.0 (50.0 to 100.0)"]
    assert cells["c"][2:] == ["0.0", "100.0", "-"]
    assert cells["e"] == ["bm25, chunks", "0 (1)", "-", "-", "-"]
    assert cells["macro"][1] == "4 (2)"
    assert list(cells) == ["a", "b", "c", "e", "macro", "micro"]
    assert {len(line) for line in table.body} == {len(table.head)}


def test_without_records() -> None:
    assert {row["metric"] for row in rotation_rows([], [SETTING], asked_of(), asked_of())} == {"left_out"}
