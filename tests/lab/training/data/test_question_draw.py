import random
from collections import Counter
from dataclasses import replace

import pytest

from spscanner_rag.lab.evidence.questions import Document
from spscanner_rag.lab.training.data.documents import DocumentStore
from spscanner_rag.lab.training.data.questions import QuestionDraw
from spscanner_rag.lab.training.data.source_collections import SourceCollections
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.scan.prepare import Reading

RECIPE = Recipe(source_cap=30)


def test_sources_are_drawn_by_weight_and_questions_evenly(store: DocumentStore) -> None:
    questions = QuestionDraw(store, replace(RECIPE, source_weights={"roads": 0.5}))
    assert questions.source_weights == {"roads": 0.5, "walks": pytest.approx((24 / 30) ** 0.7)}
    draw = random.Random(0)
    drawn = [questions.answered(draw) for _ in range(3000)]
    assert all(d.question == store.without_text(d.document).questions[d.place or 0] for d in drawn)
    shares = Counter(store.without_text(d.document).source for d in drawn)
    assert shares["roads"] / 3000 == pytest.approx(0.5 / (0.5 + (24 / 30) ** 0.7), abs=0.04)
    assert len({(d.document, d.place) for d in drawn}) == 72


def test_plain_text_has_a_factor_of_its_own(store: DocumentStore) -> None:
    questions = QuestionDraw(store, replace(RECIPE, pseudo_weight=0.25), {"roads"})
    assert questions.source_weights["roads"] == 0.25
    with pytest.raises(ValueError, match="no question with evidence"):
        QuestionDraw(store, replace(RECIPE, pseudo_weight=0.0), {"roads", "walks"})


def test_a_source_of_weight_zero_is_never_drawn(store: DocumentStore) -> None:
    questions = QuestionDraw(store, replace(RECIPE, source_weights={"roads": 0.0}))
    draw = random.Random(0)
    for _ in range(100):
        for drawn in (questions.answered(draw), questions.unanswered(draw)):
            assert drawn is None or store.without_text(drawn.document).source == "walks"


def test_questions_of_other_documents_are_not_answered(documents: list[Document]) -> None:
    distinct = [
        replace(d, questions=tuple(replace(q, text=f"{q.text} {d.doc_id}") for q in d.questions))
        for d in documents
    ]
    questions = QuestionDraw(DocumentStore(distinct), RECIPE)
    draw = random.Random(0)
    for _ in range(50):
        drawn = questions.unanswered(draw)
        assert drawn is not None
        assert not drawn.answered
        assert drawn.place is None
        document = distinct[drawn.document]
        assert drawn.question not in document.questions
        assert drawn.question.text.split()[-1].startswith(document.source)  # of the same source


def test_a_question_that_is_asked_of_every_document_is_not_exchanged(store: DocumentStore) -> None:
    questions = QuestionDraw(store, RECIPE)  # all of them are asked the same four
    assert all(questions.unanswered(random.Random(seed)) is None for seed in range(10))


def test_a_source_with_unanswerable_questions_gives_its_own(documents: list[Document]) -> None:
    first = documents[0]
    one = replace(
        first, questions=(*first.questions, replace(first.questions[0], text="Why?", answerable=False))
    )
    questions = QuestionDraw(
        DocumentStore([one, *documents[1:]]), replace(RECIPE, source_weights={"roads": 0.0})
    )
    for seed in range(10):
        drawn = questions.unanswered(random.Random(seed))
        assert drawn is not None
        assert (drawn.document, drawn.place, drawn.question.text) == (0, 4, "Why?")
        assert not drawn.answered


def test_a_share_without_such_questions_is_refused(documents: list[Document]) -> None:
    with pytest.raises(ValueError, match=r"unanswerable_share is 0\.1, but no source"):
        QuestionDraw(DocumentStore(documents[:1]), replace(RECIPE, unanswerable_share=0.1))


def test_another_document_s_question_is_asked_of_the_nearest_that_does_not_answer_it(
    distinct: list[Document], reading: Reading
) -> None:
    roads = [d for d in distinct if d.source == "roads"]
    first = roads[0]
    question = replace(
        first.questions[0], text="Where was the badger of Zanzibar?", answers=("a spotted lynx",)
    )
    corpus = [replace(d, questions=()) for d in roads]
    corpus[0] = replace(first, title="A", questions=(question,))
    corpus[-1] = roads[-1]  # there is another document to exchange questions with
    starts = (
        "Zanzibar badger badger Zanzibar. A spotted lynx.",
        "Zanzibar badger Zanzibar.",
        "The Zanzibar.",
    )
    corpus[1:4] = [replace(d, text=f"{start} {d.text}") for d, start in zip(corpus[1:4], starts, strict=True)]
    corpus[2] = replace(corpus[2], title="a!")  # belongs to the first
    recipe = replace(RECIPE, unanswerable_share=0.5, unanswerable_near_share=0.999)
    store = DocumentStore(corpus)
    questions = QuestionDraw(store, recipe, (), SourceCollections(store, reading, {"roads"}))
    drawn = [questions.unanswered(random.Random(seed)) for seed in range(20)]
    # the nearest has the answer, the second belongs to the question's own document
    places = {(d.document, d.place, d.answered) for d in drawn if d is not None and d.question == question}
    assert places == {(3, None, False)}
