"""Questions in other forms: what is asked stays, and so do evidence and answers."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.evidence.questions import Document, Question
from spscanner_rag.scan.prepare import Reading
from spscanner_rag.training.data.document_store import DocumentStore
from spscanner_rag.training.data.examples import ExampleSource
from spscanner_rag.training.data.phrasings import (
    MOST_WORDS,
    OtherPhrasings,
    keywords,
    request,
    some_words,
)
from spscanner_rag.training.data.question_draw import Drawn
from spscanner_rag.training.recipe import Recipe

QUESTION = Question("q", "Who built the river wall in 1908?", ("Anne",), ((0, 4),))


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("Who built the river wall in 1908?", "built river wall 1908"),
        ("What was O'Neill's share of the U.S. market?", "O'Neill's share U.S market"),
        ("Where was he?", "Where was he?"),  # nothing is left
        ("Who is Anne?", "Who is Anne?"),
        ("", ""),
    ],
)
def test_keywords(question: str, words: str) -> None:
    assert keywords(question) == words


@given(st.text(max_size=60))
def test_a_request_holds_the_question_as_it_is(question: str) -> None:
    asked = request(question, random.Random(0))
    assert question in asked
    assert len(asked) > len(question)


@given(st.text(), st.integers(0, 20))
def test_some_words_are_words_of_the_text(text: str, seed: int) -> None:
    words = some_words(text, random.Random(seed))
    assert len(words) <= MOST_WORDS
    assert all(word in text for word in words)


def test_some_words_begin_with_a_sentence() -> None:
    text = "One two three four five six. " * 30
    assert {some_words(text, random.Random(seed))[0] for seed in range(30)} == {"One"}
    lengths = [len(some_words(text, random.Random(seed))) for seed in range(200)]
    assert min(lengths) >= 5
    assert sum(length < 18 for length in lengths) > 80  # few words more often than many


def test_a_third_of_each_form() -> None:
    store = DocumentStore(
        [
            Document("a", "s", "", "Mine. " * 9, ()),
            Document("b", "s", "", "Other words stand here. " * 9, ()),
        ]
    )
    phrasings, draw = OtherPhrasings(store, 0.9), random.Random(0)
    drawn = Drawn(0, QUESTION, 3, True)
    changed = [phrasings.drawn(drawn, draw) for _ in range(600)]
    assert {replace(each, question=QUESTION) for each in changed} == {drawn}
    assert {replace(each.question, text=QUESTION.text) for each in changed} == {QUESTION}
    texts = [each.question.text for each in changed]
    assert 140 < sum(text == "built river wall 1908" for text in texts) < 220
    beside = [text for text in texts if "stand" in text and text != QUESTION.text]
    assert 50 < len(beside) < 140  # another document is drawn every other time
    assert {text.startswith(QUESTION.text) for text in beside} == {True, False}
    assert all(QUESTION.text in text for text in texts if text != "built river wall 1908")
    assert 110 < texts.count(QUESTION.text) < 190  # a tenth, and where the document itself was drawn
    assert not any("Mine" in text for text in texts)


@pytest.mark.parametrize("group_share", [0.0, 0.9])
def test_examples_ask_in_other_forms(documents: list[Document], reading: Reading, group_share: float) -> None:
    documents = [
        replace(
            document, questions=[replace(q, text=f"{q.text} {document.doc_id}") for q in document.questions]
        )
        for document in documents
    ]

    def asked(share: float) -> list[str]:
        recipe = Recipe(
            sequence_tokens=(256,), other_phrasings_share=share, group_share=group_share, group_tokens=200,
            unanswerable_share=0.3,
        )  # fmt: skip
        source = ExampleSource(DocumentStore(documents), reading, recipe)
        examples = (source.example(number, 256) for number in range(60))
        return [
            reading.tokenizer.decode(each.sequence.input_ids.tolist()).split("\n")[0] for each in examples
        ]

    forms = ("Find the passages that answer", "My question is")
    assert not any(form in text for text in asked(0.0) for form in forms)
    assert any(form in text for text in asked(0.99) for form in forms)
    assert asked(0.99) == asked(0.99)
