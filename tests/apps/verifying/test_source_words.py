import pytest

from spscanner_rag.apps.verifying.source_words import words_of_text


def forms(text: str) -> list[str]:
    return [word.form for word in words_of_text(text)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The officer’s café", "the  OFFICER'S cafe\u0301"),
        ("a light-\n  house", "a lighthouse"),
        ("co\u00adoperate", "cooperate"),
        ("4,194 marks", "4\u202f194 marks"),
        ("o\ufb03ce “hours”", 'office "hours"'),
        ("it sank.[12] Then", "it sank. Then"),
        ("the harbour.³ Then", "the harbour. Then"),
        ("−5 degrees", "-5 degrees"),
    ],
)
def test_typography_changes_no_word(one: str, other: str) -> None:
    assert forms(one) == forms(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("3.5", "35"),
        ("5 %", "5"),
        ("£5", "$5"),
        ("-5", "5"),
        ("< 5", "> 5"),
        ("cannot", "can"),
        ("1,5", "15"),
    ],
)
def test_what_changes_a_number_is_a_word(one: str, other: str) -> None:
    assert forms(one) != forms(other)


def test_scripts_without_spaces_are_compared_by_characters() -> None:
    assert forms("船は沈んだ") == list("船は沈んだ")


def test_markup_is_left_out() -> None:
    words = words_of_text("<b>rain</b> fell", [(0, 3), (7, 11)])
    assert [word.form for word in words] == ["rain", "fell"]
