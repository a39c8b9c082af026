"""Long documents are cut at sentence ends, and evidence stays in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.lab.evaluation.shortening import shortened
from spscanner_rag.lab.evidence.questions import Document, Question
from spscanner_rag.text.segmentation import SentenceSegmenter

SENTENCES = [f"On day {number} of the walk an otter crossed the road." for number in range(30)]
TEXT = " ".join(SENTENCES)


def question(*sentences: int, qid: str = "q") -> Question:
    spans = ((TEXT.index(SENTENCES[number]), len(SENTENCES[number])) for number in sentences)
    return Question(qid, "Which day?", tuple((start, start + length) for start, length in spans))


def document(*questions: Question) -> Document:
    return Document("d", "walks", "", TEXT, questions)


def quoted(cut: Document) -> list[list[str]]:
    return [[cut.text[start:end] for start, end in question.evidence] for question in cut.questions]


def test_a_short_document_is_left_as_it_is() -> None:
    given = document(question(3))
    assert shortened(given, len(TEXT)) is given


def test_the_first_stretch_with_the_evidence() -> None:
    cut = shortened(document(question(20)), 160)
    assert cut.text == " ".join(SENTENCES[18:21])
    assert quoted(cut) == [[SENTENCES[20]]]
    assert shortened(document(), 160).text == " ".join(SENTENCES[:3])


def test_the_stretch_with_the_most_questions_wins_and_the_others_are_left_out() -> None:
    cut = shortened(document(question(2, qid="one"), question(10, qid="two"), question(11, qid="three")), 160)
    assert [q.qid for q in cut.questions] == ["two", "three"]
    assert quoted(cut) == [[SENTENCES[10]], [SENTENCES[11]]]


def test_evidence_that_is_too_far_apart_is_left_out() -> None:
    absent = Question("absent", "Who paid?", (), answerable=False)
    cut = shortened(document(question(0, 29), absent), 160)
    assert cut.questions == (absent,)


def test_a_long_sentence_stays_whole() -> None:
    cut = shortened(document(question(5)), 10)
    assert cut.text == SENTENCES[5]


def test_white_space_has_no_sentence() -> None:
    given = Document("d", "walks", "", " \n" * 20, ())
    assert shortened(given, 10) is given


def test_refuses_no_characters() -> None:
    with pytest.raises(ValueError, match="documents of 0 characters; expected at least 1"):
        shortened(document(), 0)


@given(
    st.lists(
        st.sampled_from(["It rained.", "Herons rest, and otters swim! ", "Why?", "\n\n", "One. "]),
        max_size=30,
    ),
    st.data(),
)
def test_whole_sentences_and_exact_evidence(parts: list[str], data: st.DataObject) -> None:
    text = " ".join(parts)
    spans = [(unit.start, unit.end) for unit in SentenceSegmenter().segment(text)]
    picks = data.draw(st.lists(st.sampled_from(spans), max_size=5)) if spans else []
    questions = tuple(Question(str(number), "?", (span,)) for number, span in enumerate(picks))
    characters = data.draw(st.integers(1, 200))
    cut = shortened(Document("d", "s", "", text, questions), characters)
    assert len(cut.text) <= max([characters, *(end - start for start, end in spans)])
    assert cut.text in text
    if len(text) > characters and spans:
        first = text.index(cut.text)
        assert any(text[start:].startswith(cut.text) for start, _ in spans), first
    by_id = {q.qid: q for q in questions}
    for kept in cut.questions:
        before = by_id[kept.qid].evidence
        assert [cut.text[s:e] for s, e in kept.evidence] == [text[s:e] for s, e in before]
