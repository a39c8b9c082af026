"""Words that a text in another language may share with a question."""

import pytest

from spscanner_rag.lexical.names_and_numbers import names_and_numbers


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("When did Ann Smith leave Riga in 1811?", "Ann Smith Riga 1811"),
        ("who left?", ""),
        ("What is 3.5 km?", "3.5"),
        ("Wer war Karl der Große?", "Karl Große"),
        ("Internet2是什么", "Internet2"),
        ("什么时候在2015年赢得?", "2015"),
        ("متى ولد Karl عام 1811", "Karl 1811"),
        ("", ""),
    ],
)
def test_names_and_numbers_are_kept(question: str, words: str) -> None:
    assert names_and_numbers(question) == words
