"""Which questions are asked of a corpus."""

from dataclasses import replace

import pytest

from spscanner_lab.evaluation.corpora import corpora_of
from spscanner_lab.evidence.questions import Document, Question

TEXT = "The otter swims. A heron flies. Rain fell all day."


def asked(
    doc_id: str, *questions: str, source: str = "wild", text: str = TEXT
) -> Document:
    own = (
        Question(f"{doc_id}-{number}", query, ((4, 9),))
        for number, query in enumerate(questions)
    )
    return Document(doc_id, source, "", text, tuple(own))


def test_sources_are_apart_and_in_order() -> None:
    given = [
        asked("b", "B?"),
        asked("a", "A?"),
        asked("y", "A?", source="a"),
        asked("x", source="a"),
    ]
    corpora = corpora_of(given)
    assert [
        (corpus.source, [d.doc_id for d in corpus.documents]) for corpus in corpora
    ] == [
        ("a", ["x", "y"]),
        ("wild", ["a", "b"]),
    ]
    assert {q.text for _, q in corpora[1].questions} == {"A?", "B?"}
    assert all(d in corpora[1].documents for d, _ in corpora[1].questions)


def test_a_question_of_two_documents_is_not_asked() -> None:
    absent = Question("absent", "who  LEFT?", (), answerable=False)
    other = asked("b", "who signed? ")
    given = [
        asked("a", "Who signed?", "Who left?", "Who swims?"),
        replace(other, questions=(*other.questions, absent)),
        asked("c", "Who swims twice?", "Who swims twice?"),
    ]
    (corpus,) = corpora_of(given)
    assert sorted(q.text for _, q in corpus.questions) == [
        "Who swims twice?",
        "Who swims twice?",
        "Who swims?",
    ]
    assert corpus.left_out == 3


def test_the_sample_is_of_what_can_be_asked() -> None:
    given = [
        asked("a", "Who signed?", *(f"Question {n}?" for n in range(20))),
        asked("b", "Who signed?"),
    ]
    without = [
        asked("c", "A?", source="x"),
        asked("d", "A?", source="x"),
    ]  # it has no question of its own
    (few,), (more,) = (corpora_of([*given, *without], n) for n in (3, 10))
    assert len(few.questions) == 3
    assert list(more.questions[:3]) == list(few.questions)


def test_questions_whose_evidence_is_cut_off() -> None:
    long = " ".join(f"On day {n} an otter crossed the road." for n in range(50))
    far = Question("far", "When?", ((0, 5), (len(long) - 5, len(long))))
    near = Question("near", "Where?", ((len(long) - 5, len(long)),))
    (corpus,) = corpora_of(
        [Document("a", "wild", "", long, (far, near)), asked("b")], characters=200
    )
    assert all(len(d.text) <= 200 for d in corpus.documents)
    ((right, question),) = corpus.questions
    (span,) = question.evidence
    assert (right.text[slice(*span)], question.qid, corpus.left_out) == (
        "road.",
        "near",
        1,
    )


@pytest.mark.parametrize(
    ("documents", "least", "message"),
    [
        (
            [asked("a", "A?"), asked("b")],
            3,
            "has 2 documents; expected at least 3: .* or a smaller --among",
        ),
        ([asked("a", "A?"), asked("a", "B?")], 2, "two documents with the id 'a'"),
        (
            [asked("a", "A?"), asked("b", "A?")],
            2,
            r"expected at least one \(2 have the same words as",
        ),
        ([asked("a"), asked("b")], 2, "no answerable question with evidence"),
    ],
)
def test_refusals(documents: list[Document], least: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        corpora_of(documents, least=least)
