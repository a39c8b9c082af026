import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.lab.evidence.questions import Document, Question
from spscanner_rag.lab.training.data.document_store import DocumentStore
from spscanner_rag.lab.training.data.examples import ExampleSource
from spscanner_rag.lab.training.data.question_draw import QuestionDraw
from spscanner_rag.lab.training.data.wrong_entity import with_wrong_entity
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.scan.prepare import Reading
from spscanner_rag.text.units import Unit

SENTENCES = [
    "The bridge was built by Thomas Hale in 1908.",
    "It was widened by Edith Moore in 1951.",
    "A lamp on the pier is named after Ruth Penn.",
    "The U.S. Navy gave 12 bells to the town.",
]
TEXT = " ".join(SENTENCES)


def units_of(sentences: list[str], gap: int = 0) -> list[Unit]:
    ends = np.cumsum([len(sentence) + gap for sentence in sentences]).tolist()
    starts = [0, *ends[:-1]]
    return [Unit(start, start + len(own), own) for start, own in zip(starts, sentences, strict=True)]


def changed(question: str, *evidence: int) -> set[str]:
    units = units_of(SENTENCES, gap=1)
    relevant = np.isin(np.arange(len(units)), evidence)
    found = {with_wrong_entity(question, TEXT, units, relevant, random.Random(seed)) for seed in range(60)}
    return {question for question in found if question is not None}


def test_a_name_is_exchanged_for_another_of_the_document() -> None:
    asked = changed("When did Thomas Hale build the bridge?", 0)
    assert asked == {
        "When did Edith Moore build the bridge?",
        "When did Ruth Penn build the bridge?",
        "When did Navy build the bridge?",
    }


def test_a_year_is_exchanged_for_a_year() -> None:
    assert changed("Who built it in 1908?", 0) == {"Who built it in 1951?"}


@pytest.mark.parametrize(
    "question",
    [
        "When was the bridge built?",  # no name
        "Who gave 12 bells?",  # no other number
        "Was Thomas Hale or Edith Moore or Ruth Penn or the Navy first?",  # all are in the question
    ],
)
def test_none_where_nothing_can_be_exchanged(question: str) -> None:
    assert changed(question, 0) == set()


def test_a_sentence_that_may_answer_the_new_question_is_left_alone() -> None:
    asked = changed(
        "In which year was the bridge widened after the work of Thomas Hale, on the pier lamp?", 0
    )
    assert not any("Ruth Penn" in question for question in asked)  # "pier" and "lamp"
    assert any("Edith Moore" in question for question in asked)  # "widened" alone


def test_words_of_the_evidence_are_not_put_in() -> None:
    asked = changed("When did Ruth Penn build the bridge?", 0, 1)
    assert asked == {"When did Navy build the bridge?"}


@given(st.lists(st.text(" .?Aa1B9", max_size=12), min_size=1, max_size=5), st.text("Aa B19?", max_size=15))
def test_one_entity_of_the_same_kind_or_nothing(sentences: list[str], question: str) -> None:
    units = units_of(["", *sentences])
    relevant = np.arange(len(units)) == 0
    found = with_wrong_entity(question, "".join(sentences), units, relevant, random.Random(0))
    if found is not None:
        start = next(n for n in range(len(question)) if not found.startswith(question[: n + 1]))
        assert start > 0
        assert found != question


NAMES = ("Ann Reed", "Bob Stone", "Cy Marsh", "Di Frost", "Ed Holt", "Flo Byrne")


@pytest.fixture
def people() -> list[Document]:
    """Documents of ten sentences, of which one says what a person found, and the others who watched."""
    documents = []
    for number in range(4):
        found = f"Near the weir, {NAMES[number]} found a badger with silver whiskers."
        watched = [f"On day {day} the road was watched by {name}." for day, name in enumerate(NAMES[4:] * 4)]
        text = " ".join([*watched[:4], found, *watched[4:]])
        start = text.index(found)
        question = f"What did {NAMES[number]} find near the weir?"
        asked = Question(str(number), question, ((start, start + len(found)),))
        documents.append(Document(str(number), "people", "", text, (asked,)))
    return documents


def test_such_examples_have_no_answer_and_show_what_was_one(people: list[Document], reading: Reading) -> None:
    recipe = Recipe(sequence_tokens=(128,), unanswerable_share=0.9, unanswerable_entity_share=0.99)
    source = ExampleSource(DocumentStore(people), reading, recipe)
    seen: Counter[bool] = Counter()
    for number in range(40):
        example = source.example(number, 128)
        text = reading.tokenizer.decode(example.sequence.input_ids.tolist())
        assert "silver whiskers" in text
        wrong = any(f"What did {name} find" in text for name in NAMES[4:])
        seen[wrong] += 1
        assert example.relevant.any() != wrong
    assert seen[True] > 25
    assert seen[False] > 0


def test_without_the_share_nothing_changes(people: list[Document], reading: Reading) -> None:
    recipe = Recipe(sequence_tokens=(128,), unanswerable_share=0.5)
    source = ExampleSource(DocumentStore(people), reading, recipe)
    for number in range(20):
        text = reading.tokenizer.decode(source.example(number, 128).sequence.input_ids.tolist())
        assert not any(f"What did {name} find" in text for name in NAMES[4:])


def test_which_questions_can_be_changed(people: list[Document]) -> None:
    def drawn(documents: list[Document]) -> bool:
        questions = QuestionDraw(DocumentStore(documents), Recipe())
        return any(questions.to_change(random.Random(seed)) is not None for seed in range(20))

    claims = [
        replace(d, questions=tuple(replace(q, text="He found a badger.") for q in d.questions))
        for d in people
    ]
    marked = [
        replace(d, questions=(*d.questions, Question("none", "Who was lost?", (), answerable=False)))
        for d in people
    ]
    assert drawn(people)
    assert not drawn(claims)
    assert not drawn(marked)
