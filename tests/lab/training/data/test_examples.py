import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_lab.evidence.questions import Document, Question
from spscanner_lab.training.data import examples as examples_module
from spscanner_lab.training.data.examples import (
    DocumentStore,
    ExampleSource,
    QuestionDraw,
    bm25_scores,
    full_stretch,
    has_answer,
    labels_of,
    related,
)
from spscanner_lab.training.recipe import Recipe
from spscanner_rag.lexical.words import index_words
from spscanner_rag.scan.reading import Reading


@settings(max_examples=25)
@given(st.lists(st.text(max_size=20), max_size=6))
def test_any_texts_come_back(texts: list[str]) -> None:
    documents = [
        Document(str(i), "s", "t", text, ())
        for i, text in enumerate([*texts, "lone \ud800"])
    ]
    store = DocumentStore(documents)
    assert len(store) == len(documents)
    assert [
        store.document(number) for number in reversed(range(len(store)))
    ] == documents[::-1]
    assert list(store) == documents


def test_in_memory_are_questions_only(
    tmp_path: Path, documents: list[Document]
) -> None:
    store = DocumentStore(iter(documents), tmp_path / "new")
    assert store.without_text(1) == replace(documents[1], text="")
    # the file has no name, so it leaves nothing behind
    assert list((tmp_path / "new").iterdir()) == []


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


def test_pieces_of_a_text_and_documents_of_one_title_are_related() -> None:
    documents = [
        Document("novel-1.1", "novels", "", "", ()),
        Document("novel-1.2", "novels", "", "", ()),
        Document("novel-2.1", "novels", "", "", ()),
        Document("a", "novels", "The House", "", ()),
        Document("b", "novels", "the  house!", "", ()),
        Document("c", "novels", "The Horse", "", ()),
    ]
    found = {
        (i, j)
        for i in range(6)
        for j in range(6)
        if related(documents[i], documents[j])
    }
    assert found == {(i, i) for i in range(6)} | {(0, 1), (1, 0), (3, 4), (4, 3)}


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
def test_an_answer_is_found_in_whole_words(
    answers: tuple[str, ...], text: str, found: bool
) -> None:
    assert has_answer(text, "news", Question("q", "?", (), answers=answers)) == found


def test_an_answer_to_questions_about_many_documents_is_a_label() -> None:
    def asked(number: int, source: str) -> Document:
        answers = (
            ("Increased.", f"by {number} %") if number < 6 else (f"by {number} %",)
        )
        return Document(
            f"{source}-{number}",
            source,
            "",
            "",
            (Question("q", "?", (), answers=answers),),
        )

    labels = labels_of(
        DocumentStore([asked(n, "trials") for n in range(100)] + [asked(0, "news")])
    )
    question = Question("q", "?", (), answers=("increased", "by 3 %"))
    assert not has_answer("It increased.", "trials", question, labels)
    assert has_answer("It increased.", "news", question, labels)
    assert has_answer("It increased by 3 %, they say.", "trials", question, labels)


def test_bm25_scores_are_positive_where_a_word_is_shared() -> None:
    sentences = [
        "The red fox slept. ",
        "A fox ran. ",
        "The dog ran. ",
        "It was red. ",
        "Nothing else. ",
    ]
    scores = bm25_scores(index_words(sentences), "Where did the red foxes sleep?")
    assert scores.argmax() == 0
    assert (scores > 0).tolist() == [True, True, False, True, False]


RECIPE = Recipe(steps=4, sequence_tokens=(256,), sequences_per_step=4, source_cap=30)


def test_an_example_holds_its_evidence_and_fits(
    documents: list[Document], reading: Reading
) -> None:
    source = ExampleSource(DocumentStore(documents), reading, RECIPE)
    places = set()
    for number in range(50):
        example = source.example(number, 256)
        sequence = example.sequence
        assert example.relevant.sum() == 1
        assert len(sequence.input_ids) <= 256 + 40  # at most one sentence more
        assert len(sequence.positions) == len(example.relevant) > 1
        assert sequence.match_classes is not None
        assert sequence.prior is not None
        assert len(sequence.match_classes) == len(sequence.input_ids)
        assert len(sequence.prior) == len(example.relevant)
        # Only the key word of a question is rare, so its sentence has the best prior.
        assert sequence.prior[:, 0].argmax() == example.relevant.argmax()
        places.add(int(example.relevant.argmax()))
    assert len(places) > 2, "the evidence should stand at different places"


def test_some_examples_are_cut_anywhere(store: DocumentStore, reading: Reading) -> None:
    source = ExampleSource(store, reading, replace(RECIPE, random_place_share=0.9))
    found = {bool(source.example(number, 128).relevant.any()) for number in range(40)}
    assert found == {True, False}


def test_what_cannot_teach_is_left_out_or_refused(
    documents: list[Document], reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examples_module, "MAX_DRAWS", 20)

    def source_of(*questions: Question) -> ExampleSource:
        return ExampleSource(
            DocumentStore([replace(documents[0], questions=questions)]), reading, RECIPE
        )

    question = documents[0].questions[0]
    useless = [
        replace(question, evidence=()),
        replace(question, answerable=False),
        replace(question, ambiguous=True),
    ]
    with pytest.raises(ValueError, match="no question with evidence"):
        source_of(*useless)
    assert source_of(*useless, question).questions_by_source == {"walks": 1}
    with pytest.raises(ValueError, match="names 'rivers'; the data has roads, walks"):
        ExampleSource(
            DocumentStore(documents),
            reading,
            replace(RECIPE, source_weights={"rivers": 1.0}),
        )
    with pytest.raises(ValueError, match="raise sequence_tokens"):
        source_of(replace(question, text="Where was the badger? " * 40)).example(0, 128)


def test_a_share_of_examples_has_no_answer(
    documents: list[Document], reading: Reading
) -> None:
    asked = [
        replace(
            d,
            questions=(
                *d.questions,
                replace(d.questions[0], text=f"Why {d.doc_id}?", answerable=False),
            ),
        )
        for d in documents
    ]
    source = ExampleSource(
        DocumentStore(asked), reading, replace(RECIPE, unanswerable_share=0.5)
    )
    examples = [source.example(number, 256) for number in range(200)]
    unanswered = [example for example in examples if not example.relevant.any()]
    assert 70 < len(unanswered) < 130


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=60),
    st.integers(0, 59),
    st.integers(50, 3000),
    st.integers(0, 99),
)
def test_a_stretch_holds_its_unit_and_keeps_to_its_room(
    lengths: list[int], centre: int, room: int, seed: int
) -> None:
    ends = np.cumsum(lengths) - 1
    centre = min(centre, len(lengths) - 1)
    first, last = full_stretch(ends, centre, room, random.Random(seed))
    assert 0 <= first <= centre <= last < len(lengths)
    assert sum(lengths[first : last + 1]) <= room + 2 * max(lengths)


@pytest.mark.parametrize("rooms", [1.0, 4.0])
def test_evidence_that_is_anywhere_in_documents_is_anywhere_in_full_stretches(
    rooms: float,
) -> None:
    ends = np.arange(1, int(200 * rooms) + 1) * 5 - 1
    draw = random.Random(0)
    shares = []
    for _ in range(4000):
        centre = draw.randrange(len(ends))
        first, last = full_stretch(ends, centre, 1000, draw)
        assert last - first + 1 >= 199
        shares.append((centre - first + 0.5) / (last - first + 1))
    np.testing.assert_allclose(
        np.histogram(shares, 10, (0, 1))[0] / 4000, 0.1, atol=0.03
    )
