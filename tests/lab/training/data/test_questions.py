import random
from collections import Counter
from dataclasses import replace

import pytest

from spscanner_rag.lab.evidence.questions import Document, Question
from spscanner_rag.lab.training.data.examples import DocumentStore, Negatives, QuestionDraw, bm25_scores
from spscanner_rag.lab.training.recipe import Recipe
from spscanner_rag.lexical.words import index_words

RECIPE = Recipe(source_cap=30)


def test_sources_are_drawn_by_weight_and_questions_evenly(store: DocumentStore) -> None:
    questions = QuestionDraw(store, replace(RECIPE, source_weights={"roads": 0.5}))
    assert questions.source_weights == {"roads": 0.5, "walks": pytest.approx((24 / 30) ** 0.7)}
    draw = random.Random(0)
    drawn = [questions.answered(draw) for _ in range(3000)]
    assert all(d.question in store.without_text(d.document).questions for d in drawn)
    shares = Counter(store.without_text(d.document).source for d in drawn)
    assert shares["roads"] / 3000 == pytest.approx(0.5 / (0.5 + (24 / 30) ** 0.7), abs=0.04)
    assert len({(d.document, d.question.qid) for d in drawn}) == 72


def test_a_source_of_weight_zero_is_never_drawn(store: DocumentStore) -> None:
    questions, draw = QuestionDraw(store, replace(RECIPE, source_weights={"roads": 0.0})), random.Random(0)
    for _ in range(100):
        assert store.without_text(questions.answered(draw).document).source == "walks"
        assert questions.unanswered(draw) is None  # all documents are asked the same four


def test_questions_of_other_documents_are_not_answered(distinct: list[Document]) -> None:
    questions = QuestionDraw(DocumentStore(distinct), RECIPE)
    draw = random.Random(0)
    for _ in range(50):
        drawn = questions.unanswered(draw)
        assert drawn is not None
        assert not drawn.answered
        document = distinct[drawn.document]
        assert drawn.question not in document.questions
        assert drawn.question.qid.startswith(document.source)


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
        assert (drawn.document, drawn.question.text) == (0, "Why?")
        assert not drawn.answered


def test_a_share_without_such_questions_is_refused(documents: list[Document]) -> None:
    with pytest.raises(ValueError, match=r"unanswerable_share is 0\.1, but no source"):
        QuestionDraw(DocumentStore(documents[:1]), replace(RECIPE, unanswerable_share=0.1))


def test_pieces_of_a_text_and_documents_of_one_title_are_related() -> None:
    documents = [
        Document("novel-1.1", "novels", "", "", ()),
        Document("novel-1.2", "novels", "", "", ()),
        Document("novel-2.1", "novels", "", "", ()),
        Document("a", "novels", "The House", "", ()),
        Document("b", "novels", "the  house!", "", ()),
        Document("c", "novels", "The Horse", "", ()),
    ]
    negatives = Negatives(DocumentStore(documents))
    related = {(i, j) for i in range(6) for j in range(6) if negatives.related(i, j)}
    assert related == {(i, i) for i in range(6)} | {(0, 1), (1, 0), (3, 4), (4, 3)}


@pytest.mark.parametrize(
    ("answers", "text", "found"),
    [
        (("2008",), "It happened in 2008.", True),
        (("2008",), "It happened in 12008.", False),
        (("the sun",), "Was it THE SUN?", True),
        (("$5 (each)",), "They cost $5 (each).", True),
        (("", " "), "Anything.", False),
        ((), "Anything.", False),
    ],
)
def test_an_answer_is_found_in_whole_words(answers: tuple[str, ...], text: str, found: bool) -> None:
    negatives = Negatives(DocumentStore([]))
    assert negatives.have_answer(text, "news", Question("q", "?", (), answers=answers)) == found


def test_an_answer_to_questions_about_many_documents_is_a_label() -> None:
    def asked(number: int, source: str) -> Document:
        answers = ("Increased.", f"by {number} %") if number < 6 else (f"by {number} %",)
        return Document(f"{source}-{number}", source, "", "", (Question("q", "?", (), answers=answers),))

    negatives = Negatives(DocumentStore([asked(n, "trials") for n in range(100)] + [asked(0, "news")]))
    question = Question("q", "?", (), answers=("increased", "by 3 %"))
    assert not negatives.have_answer("It increased.", "trials", question)
    assert negatives.have_answer("It increased.", "news", question)
    assert negatives.have_answer("It increased by 3 %, they say.", "trials", question)


def test_bm25_scores_are_positive_where_a_word_is_shared() -> None:
    sentences = ["The red fox slept. ", "A fox ran. ", "The dog ran. ", "It was red. ", "Nothing else. "]
    scores = bm25_scores(index_words(sentences), "Where did the red foxes sleep?")
    assert scores.argmax() == 0
    assert (scores > 0).tolist() == [True, True, False, True, False]
