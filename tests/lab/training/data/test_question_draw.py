import random
from collections import Counter
from dataclasses import replace

import pytest

from spscanner_lab.evidence.questions import Document
from spscanner_lab.training.data.document_store import DocumentStore
from spscanner_lab.training.data.question_draw import QuestionDraw
from spscanner_lab.training.recipe import Recipe

DRAWN = Recipe(source_cap=30)


def test_sources_are_drawn_by_weight_and_questions_evenly(store: DocumentStore) -> None:
    questions = QuestionDraw(store, replace(DRAWN, source_weights={"roads": 0.5}))
    assert questions.source_weights == {
        "roads": 0.5,
        "walks": pytest.approx((24 / 30) ** 0.7),
    }
    draw = random.Random(0)
    drawn = [questions.answered(draw) for _ in range(3000)]
    assert all(d.question in store.without_text(d.document).questions for d in drawn)
    shares = Counter(store.without_text(d.document).source for d in drawn)
    assert shares["roads"] / 3000 == pytest.approx(
        0.5 / (0.5 + (24 / 30) ** 0.7), abs=0.04
    )
    assert len({(d.document, d.question.qid) for d in drawn}) == 72


def test_a_stratified_step_has_each_source_by_its_weight(store: DocumentStore) -> None:
    """Of weights 1 and 3, steps of 8 have 2 and 6; of 6, 1 or 2 and the others."""
    weights = {"roads": 1.0, "walks": 3.0}
    for examples, counts in ((8, {2}), (6, {1, 2})):
        recipe = Recipe(
            source_cap=1,
            source_weights=weights,
            stratified=True,
            sequences_per_step=examples,
        )
        questions = QuestionDraw(store, recipe)
        draw = random.Random(0)
        seen = set()
        for step in range(20):
            roads = 0
            for place in range(examples):
                drawn = questions.answered(draw, step * examples + place)
                source = store.without_text(drawn.document).source
                roads += source == "roads"
            seen.add(roads)
        assert seen == counts


def test_a_source_of_weight_zero_is_never_drawn(store: DocumentStore) -> None:
    questions, draw = (
        QuestionDraw(store, replace(DRAWN, source_weights={"roads": 0.0})),
        random.Random(0),
    )
    for _ in range(100):
        assert store.without_text(questions.answered(draw).document).source == "walks"
        # all documents have the same four questions
        assert questions.unanswered(draw) is None


def test_questions_of_other_documents_are_not_answered(
    distinct: list[Document],
) -> None:
    questions = QuestionDraw(DocumentStore(distinct), DRAWN)
    draw = random.Random(0)
    for _ in range(50):
        drawn = questions.unanswered(draw)
        assert drawn is not None
        assert not drawn.answered
        document = distinct[drawn.document]
        assert drawn.question not in document.questions
        assert drawn.question.qid.startswith(document.source)


def test_a_source_with_unanswerable_questions_gives_its_own(
    documents: list[Document],
) -> None:
    first = documents[0]
    one = replace(
        first,
        questions=(
            *first.questions,
            replace(first.questions[0], text="Why?", answerable=False),
        ),
    )
    questions = QuestionDraw(
        DocumentStore([one, *documents[1:]]),
        replace(DRAWN, source_weights={"roads": 0.0}),
    )
    for seed in range(10):
        drawn = questions.unanswered(random.Random(seed))
        assert drawn is not None
        assert (drawn.document, drawn.question.text) == (0, "Why?")
        assert not drawn.answered


def test_a_share_without_such_questions_is_refused(documents: list[Document]) -> None:
    with pytest.raises(ValueError, match=r"unanswerable_share is 0\.1, but no source"):
        QuestionDraw(
            DocumentStore(documents[:1]), replace(DRAWN, unanswerable_share=0.1)
        )
