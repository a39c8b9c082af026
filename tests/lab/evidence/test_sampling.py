"""Samples of questions: the rule, and which documents training leaves out."""

import hashlib
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_lab.evidence.questions import Document, Question
from spscanner_lab.evidence.sampling import is_held_out, sample_questions


def document(number: int, source: str = "made", questions: int = 4) -> Document:
    asked = tuple(
        Question(f"q{n}", f"Question {n}?", ((0, 1),)) for n in range(questions)
    )
    return Document(f"{source}-{number}", source, "", "A text.", asked)


DOCUMENTS = [document(number, source) for source in ("b", "a") for number in range(5)]


def ids(sample: list[tuple[Document, Question]]) -> list[tuple[str, str]]:
    return [(document.doc_id, question.qid) for document, question in sample]


def test_so_many_of_each_source() -> None:
    sample = sample_questions([*DOCUMENTS, document(0, "c", questions=2)], 7)
    assert {source: len(pairs) for source, pairs in sample.items()} == {
        "a": 7,
        "b": 7,
        "c": 2,
    }
    assert list(sample) == ["a", "b", "c"]
    assert len(sample_questions(DOCUMENTS)["a"]) == 20


@settings(max_examples=20)
@given(st.integers(1, 25), st.integers(0, 5), st.randoms(use_true_random=False))
def test_stable(per_source: int, seed: int, shuffle: random.Random) -> None:
    sample = sample_questions(DOCUMENTS, per_source, seed)
    shuffled = DOCUMENTS.copy()
    shuffle.shuffle(shuffled)
    assert sample_questions(shuffled, per_source, seed) == sample
    larger = sample_questions(DOCUMENTS, per_source + 1, seed)
    assert all(larger[source][:per_source] == sample[source] for source in sample)
    assert (
        sample_questions([d for d in DOCUMENTS if d.source == "a"], per_source, seed)[
            "a"
        ]
        == sample["a"]
    )


def test_two_questions_of_one_id() -> None:
    first, second = Question("q", "One?", ((0, 1),)), Question("q", "Two?", ((0, 1),))
    for both in ((first, second), (second, first)):
        sample = sample_questions([Document("d", "made", "", "A text.", both)])
        assert [question for _, question in sample["made"]] == [first, second]


@pytest.mark.parametrize(("answerable", "kinds"), [(True, "ap"), (False, "nu")])
def test_answerable_questions_with_evidence_and_unanswerable_ones(
    answerable: bool, kinds: str
) -> None:
    def asked(number: int) -> tuple[Question, ...]:
        return (
            Question(f"n{number}", "?", (), answerable=False),
            Question(f"u{number}", "?", ((0, 1),), answerable=False),
            Question(f"a{number}", "?", ((0, 1),), ambiguous=True),
            Question(f"p{number}", "?", ((0, 1),)),
            Question(f"e{number}", "?", ()),
        )

    documents = [Document(f"d{n}", "made", "", "A text.", asked(n)) for n in range(5)]
    found = ids(sample_questions(documents, seed=2, answerable=answerable)["made"])
    assert {qid for _, qid in found} == {
        f"{kind}{n}" for kind in kinds for n in range(5)
    }
    keys = [
        hashlib.sha256(f"2\n{doc_id}\n{qid}".encode()).hexdigest()
        for doc_id, qid in found
    ]
    assert keys == sorted(keys)
    assert (
        ids(sample_questions(documents, 3, 2, answerable=answerable)["made"])
        == found[:3]
    )
    assert (
        sample_questions(
            [Document("d", "made", "", "A text.", asked(0)[-1:])], answerable=answerable
        )
        == {}
    )


def test_odd_ids() -> None:
    odd = Document(
        "\ud800", "made", "", "A text.", (Question("\udfff", "?", ((0, 1),)),)
    )
    assert len(sample_questions([odd], 1)["made"]) == 1
    assert is_held_out("\ud800") in (True, False)


def test_held_out_is_the_dev_rule_of_the_data() -> None:
    names = [f"name-{n}" for n in range(2000)]
    expected = [
        int(hashlib.sha1(name.encode()).hexdigest(), 16) % 10 == 0 for name in names
    ]
    assert [is_held_out(name) for name in names] == expected
    assert 150 < sum(expected) < 250
