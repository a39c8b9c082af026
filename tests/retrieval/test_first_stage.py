"""Which texts are read: by their words, and by their meaning."""

import pytest

from spscanner_rag.retrieval.first_stage import choose_texts
from spscanner_rag.retrieval.held_texts import HeldTexts
from spscanner_rag.retrieval.read_bounds import ReadBounds
from spscanner_rag.scorers import ScanCancelled
from tests.retrieval.encoded import Encoded
from tests.retrieval.searching import joined

ONE = ReadBounds(read_documents=1)


def test_a_question_in_other_words_finds_its_document(
    corpus: HeldTexts, encoded: Encoded
) -> None:
    question = "Which animal hurt somebody?"
    assert [number for number, _ in choose_texts(corpus, question, ONE)] == [0]
    assert [
        number
        for number, _ in choose_texts(
            corpus, question, ONE, load_scorer=lambda: encoded
        )
    ] == [1]
    assert [
        number
        for number, _ in choose_texts(
            corpus, "the treaty", ONE, load_scorer=lambda: encoded
        )
    ] == [2]


def test_a_text_that_no_encoder_reads_does_not_silence_the_others(
    corpus: HeldTexts, encoded: Encoded, monkeypatch: pytest.MonkeyPatch
) -> None:
    meaning = encoded.meaning
    assert meaning is not None
    readers = iter([None])  # of the first text; then the encoder for all others
    monkeypatch.setattr(
        meaning, "of_question", lambda query, vectors: next(readers, meaning)
    )
    question = "Which animal hurt somebody?"
    chosen = choose_texts(corpus, question, ONE, load_scorer=lambda: encoded)
    assert [number for number, _ in chosen] == [1]


def test_no_encoder_is_asked_for_where_all_is_read(corpus: HeldTexts) -> None:
    def never() -> Encoded:
        raise AssertionError

    assert len(choose_texts(corpus, "soup", ReadBounds(), load_scorer=never)) == 3


def test_encoding_can_be_cancelled(corpus: HeldTexts, encoded: Encoded) -> None:
    with pytest.raises(ScanCancelled):
        choose_texts(
            corpus, "soup", ONE, load_scorer=lambda: encoded, cancelled=lambda: True
        )


NOTES = [f"Note {number}. It rained." for number in range(8)]


def test_texts_without_a_word_of_the_query_come_last() -> None:
    corpus = HeldTexts().with_texts(joined([*NOTES, "A viper sleeps."]))
    assert [number for number, _ in choose_texts(corpus, "viper", ReadBounds(3))] == [
        0,
        1,
        8,
    ]
    assert choose_texts(corpus, "viper", ReadBounds(3))[0] == (0, None)
    assert [number for number, _ in choose_texts(corpus, "xyzzy", ReadBounds(2))] == [
        0,
        1,
    ]
