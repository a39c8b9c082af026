"""Which documents are a corpus, and which questions are asked of it."""

from dataclasses import replace

import pytest

from spscanner_rag.lab.evaluation.corpora import corpora_of
from spscanner_rag.lab.evidence.questions import Document, Question

TEXT = "The otter swims. A heron flies. Rain fell all day."


def document(doc_id: str, *questions: str, source: str = "wild", text: str = TEXT) -> Document:
    asked = (Question(f"{doc_id}-{number}", words, ((4, 9),)) for number, words in enumerate(questions))
    return Document(doc_id, source, "", text, tuple(asked))


def test_sources_are_apart_and_in_order() -> None:
    documents = [
        document("b", "B?"),
        document("a", "A?"),
        document("y", "A?", source="a"),
        document("x", source="a"),
    ]
    first, second = corpora_of(documents)
    assert [(corpus.source, [d.doc_id for d in corpus.documents]) for corpus in (first, second)] == [
        ("a", ["x", "y"]),
        ("wild", ["a", "b"]),
    ]
    assert {q.text for _, q in second.asked} == {"A?", "B?"}
    assert all(d in second.documents for d, _ in second.asked)


def test_a_question_of_two_documents_is_not_asked() -> None:
    absent = Question("absent", "who  LEFT?", (), answerable=False)
    given = [
        document("a", "Who signed?", "Who left?", "Who swims?"),
        replace(
            document("b", "who signed? ", "Who flies?"),
            questions=(*document("b", "who signed? ").questions, absent),
        ),
        document("c", "Who swims twice?", "Who swims twice?"),
    ]
    (corpus,) = corpora_of(given)
    assert sorted(q.text for _, q in corpus.asked) == ["Who swims twice?", "Who swims twice?", "Who swims?"]
    assert corpus.repeated == 3
    assert corpus.cut_off == 0


def test_the_sample_is_of_what_can_be_asked() -> None:
    given = [
        document("a", "Who signed?", *(f"Question {n}?" for n in range(20))),
        document("b", "Who signed?"),
    ]
    (few,), (more,) = (corpora_of(given, n) for n in (3, 10))
    assert len(few.asked) == 3
    assert list(more.asked[:3]) == list(few.asked)


def test_cut_documents() -> None:
    long = " ".join(f"On day {n} an otter crossed the road." for n in range(50))
    far = Question("far", "When?", ((0, 5), (len(long) - 5, len(long))))
    near = Question("near", "Where?", ((len(long) - 5, len(long)),))
    given = [Document("a", "wild", "", long, (far, near)), document("b")]
    (corpus,) = corpora_of(given, characters=200)
    assert all(len(d.text) <= 200 for d in corpus.documents)
    ((right, question),) = corpus.asked
    (span,) = question.evidence
    assert (right.text[slice(*span)], question.qid) == ("road.", "near")
    assert corpus.cut_off == 1


def test_the_digest_tells_corpora_apart() -> None:
    given = [document("a", "A?"), document("b", "B?")]
    (plain,) = corpora_of(given)
    assert corpora_of(given[::-1])[0].digest == plain.digest
    assert corpora_of([*given, document("c")])[0].digest != plain.digest
    assert corpora_of([given[0], document("b", "B?", text=TEXT + " The end.")])[0].digest != plain.digest
    assert corpora_of([document("a\ud800", "A?"), given[1]])[0].digest != plain.digest


def test_refusals() -> None:
    with pytest.raises(ValueError, match="source 'wild' has 1 document; expected at least 2: give more"):
        corpora_of([document("a", "A?")])
    with pytest.raises(ValueError, match=r"has 2 documents; expected at least 3: .* or a smaller --among"):
        corpora_of([document("a", "A?"), document("b")], least=3)
    with pytest.raises(ValueError, match="two documents with the id 'a'"):
        corpora_of([document("a", "A?"), document("a", "B?")])
    with pytest.raises(ValueError, match=r"expected at least one \(2 have the words of another"):
        corpora_of([document("a", "A?"), document("b", "A?")])
    with pytest.raises(ValueError, match="no answerable question with evidence"):
        corpora_of([document("a"), document("b")])


def test_a_source_without_a_question_is_left_out() -> None:
    given = [
        document("a", "A?"),
        document("b", "A?"),
        document("c", "A?", source="x"),
        document("d", source="x"),
    ]
    assert [corpus.source for corpus in corpora_of(given)] == ["x"]
