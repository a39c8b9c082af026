"""The forms of a German verb have one stem."""

import pytest

from spscanner_rag.lexical.german_stems import german_stems


@pytest.mark.parametrize(
    "forms",
    [
        "heizen heizt heizte geheizt geheizten",
        "einheizen einheizte eingeheizt",
        "sagen sagt sagte gesagt",
        "gründen gründet gründete gegründet",
        "zurückzahlen zurückgezahlt zurückzahlt",
        "kündigen kündigt gekündigt Kündigung",
        "gericht gerichte gerichts gerichten",
        "gesellschaft gesellschaften",
        "stadt städte städten",
    ],
)
def test_forms_of_a_word_have_one_stem(forms: str) -> None:
    assert len({*german_stems(forms.lower().split())}) == 1


@pytest.mark.parametrize(
    "words",
    ["nacht nach", "sicht sich", "gebiet bietet", "gewalt walt", "gesicht sicht"],
)
def test_other_words_keep_theirs(words: str) -> None:
    first, second = german_stems(words.split())
    assert first != second
