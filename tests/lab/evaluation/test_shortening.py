"""Documents cut to a length."""

from hypothesis import given
from hypothesis import strategies as st

from spscanner_lab.evaluation.shortening import shortened
from spscanner_lab.evidence.questions import Document, Question
from spscanner_rag.text.segmentation import SentenceSegmenter

SENTENCES = [
    f"On day {number} of the walk an otter crossed the road." for number in range(30)
]


WALK = " ".join(SENTENCES)


def about(*sentences: int, qid: str = "q") -> Question:
    spans = (
        (WALK.index(SENTENCES[number]), len(SENTENCES[number])) for number in sentences
    )
    return Question(
        qid, "Which day?", tuple((start, start + length) for start, length in spans)
    )


def walk(*questions: Question) -> Document:
    return Document("d", "walks", "", WALK, questions)


def quoted(cut: Document) -> list[list[str]]:
    return [
        [cut.text[start:end] for start, end in question.evidence]
        for question in cut.questions
    ]


def test_the_first_stretch_with_the_evidence_of_the_most_questions() -> None:
    cut = shortened(walk(about(20)), 160)
    assert cut.text == " ".join(SENTENCES[18:21])
    assert quoted(cut) == [[SENTENCES[20]]]
    assert shortened(walk(), 160).text == " ".join(SENTENCES[:3])
    assert (
        shortened(walk(about(5)), 10).text == SENTENCES[5]
    )  # a long sentence stays whole
    cut = shortened(
        walk(about(2, qid="one"), about(10, qid="two"), about(11, qid="three")), 160
    )
    assert [q.qid for q in cut.questions] == ["two", "three"]
    assert quoted(cut) == [[SENTENCES[10]], [SENTENCES[11]]]
    absent = Question("absent", "Who paid?", (), answerable=False)
    assert shortened(walk(about(0, 29), absent), 160).questions == (
        absent,
    )  # too far apart


@given(
    st.lists(
        st.sampled_from(
            ["It rained.", "Herons rest, and otters swim! ", "Why?", "\n\n", "One. "]
        ),
        max_size=30,
    ),
    st.data(),
)
def test_whole_sentences_and_exact_evidence(
    parts: list[str], data: st.DataObject
) -> None:
    text = " ".join(parts)
    spans = [(unit.start, unit.end) for unit in SentenceSegmenter().segment(text)]
    picks = data.draw(st.lists(st.sampled_from(spans), max_size=5)) if spans else []
    questions = tuple(
        Question(str(number), "?", (span,)) for number, span in enumerate(picks)
    )
    characters = data.draw(st.integers(1, 200))
    whole = Document("d", "s", "", text, questions)
    cut = shortened(whole, characters)
    if len(text) <= characters or not spans:  # short, or only white space
        assert cut is whole
        return
    assert len(cut.text) <= max([characters, *(end - start for start, end in spans)])
    assert any(text[start:].startswith(cut.text) for start, _ in spans)
    by_id = {q.qid: q for q in questions}
    for kept in cut.questions:
        before = by_id[kept.qid].evidence
        assert [cut.text[s:e] for s, e in kept.evidence] == [
            text[s:e] for s, e in before
        ]
