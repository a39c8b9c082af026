import argparse
import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.limit_corpora import ITEMS, Person, enlarged, measure_limit
from spscanner_rag.lab.evidence.questions import Document, Question, read_documents

THINGS = [f"Thing {number}" for number in range(60)]
FREE = [f"Free {number}" for number in range(50)]


@pytest.fixture(scope="module")
def limit() -> Document:
    """Three persons; two of them like each thing that is asked for."""
    persons = [
        Person("Ada Alpha", tuple(THINGS[:40] + FREE[:25])),
        Person("Bea Beta", tuple(THINGS[20:] + FREE[25:])),
        Person("Cleo Gamma", tuple(THINGS[:20] + THINGS[40:] + FREE[:10])),
    ]
    text = "\n\n".join(person.biography for person in persons)
    questions = []
    for number, thing in enumerate(THINGS):
        names = tuple(person.name for person in persons if thing in person.items)
        spans = tuple((text.index(n), text.index(n) + 10) for n in names)
        questions.append(Question(str(number), f"Who likes {thing}?", spans, answers=names))
    return Document("limit", "limit", "", text, tuple(questions))


def test_further_persons_like_only_what_no_question_names(limit: Document) -> None:
    corpus = enlarged(limit, 30)
    persons = [Person.of(paragraph) for paragraph in corpus.text.split("\n\n")]
    assert len(persons) == len({person.name for person in persons}) == 30
    known = set(limit.text.split("\n\n"))
    assert known <= set(corpus.text.split("\n\n"))
    further = [person for person in persons if person.biography not in known]
    assert len(further) == 27
    for person in further:
        assert len(set(person.items)) == ITEMS
        assert set(person.items) <= set(FREE)
    for question in corpus.questions:
        found = {corpus.text[start:end].partition(" likes ")[0] for start, end in question.evidence}
        assert found == set(question.answers)
        thing = question.text.removeprefix("Who likes ").removesuffix("?")
        assert {person.name for person in persons if thing in person.items} == found
    assert enlarged(limit, 30) == corpus
    assert enlarged(limit, 30, seed=1).text != corpus.text


def test_the_size_is_checked_and_the_smallest_is_the_original(limit: Document) -> None:
    assert enlarged(limit, 3).text == limit.text
    for persons in (2, 1_000):
        with pytest.raises(ValueError, match=f"persons is {persons}; expected 3 to 45"):
            enlarged(limit, persons)


def test_recall_is_measured_and_corpora_are_written(limit: Document, tmp_path: Path) -> None:
    record = {"doc_id": "limit", "source": "limit", "text": limit.text}
    questions = [
        {"qid": q.qid, "question": q.text, "answers": q.answers, "evidence": q.evidence}
        for q in limit.questions
    ]
    (tmp_path / "limit.jsonl").write_text(json.dumps(record | {"questions": questions}) + "\n")
    arguments = argparse.Namespace(
        data=tmp_path / "limit.jsonl",
        persons=[3, 20],
        retrievers=["bm25"],
        questions=10,
        seed=0,
        write=tmp_path / "out",
    )
    rows, ok = measure_limit(arguments)
    assert ok
    row = rows["20 persons, bm25"]
    assert isinstance(row, dict)
    assert row["@10"] >= row["@2"] >= row["@1"] > 0
    assert row["@1"] <= 50  # one of two
    (written,) = read_documents([tmp_path / "out" / "limit-20.jsonl"])
    assert written.text == enlarged(limit, 20).text
    assert np.isfinite(row["s/question"])
