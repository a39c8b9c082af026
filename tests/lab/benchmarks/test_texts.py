"""The texts of measurements are as long as they are asked to be, in every run."""

from spscanner_lab.benchmarks.texts import (
    CHARACTERS_PER_TOKEN,
    example_text,
    short_texts,
    synthetic_corpus,
    text_of_tokens,
)


def test_the_novel_is_repeated_and_cut() -> None:
    long = example_text(1_000_000)
    assert len(long) == 1_000_000
    assert long.startswith(example_text(500))
    assert len(text_of_tokens(100)) == round(100 * CHARACTERS_PER_TOKEN)


def test_short_texts_are_different_pieces() -> None:
    texts = short_texts(5, 40)
    assert len(texts) == len(set(texts)) == 5
    assert {len(text) for text in texts} == {round(40 * CHARACTERS_PER_TOKEN)}


def test_each_question_of_a_synthetic_corpus_has_one_document_with_its_answer() -> None:
    texts, questions = synthetic_corpus(6, 900, 3)
    assert len(texts) == 6
    assert all(600 < len(text) < 1500 for text in texts)
    assert [question.document for question in questions] == [0, 2, 4]
    for question in questions:
        having = [n for n, text in enumerate(texts) if question.answer in text]
        assert having == [question.document]
        place = question.query.removeprefix("Who kept the lighthouse at ")[:-1]
        assert place in question.answer
    assert synthetic_corpus(6, 900, 3) == (texts, questions)
