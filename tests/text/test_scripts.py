"""The scripts of letters."""

from spscanner_rag.text.scripts import HAN, LATIN, has_kana, main_script, script_of


def test_letters_have_a_script() -> None:
    letters = {"ü": LATIN, "ж": "cyrillic", "ก": "thai", "か": HAN, "한": "hangul"}
    letters |= {"ش": "arabic", "ह": "devanagari", "ά": "greek", "ἄ": "greek"}
    assert {letter: script_of(letter) for letter in letters} == letters


def test_the_main_script_has_half_of_the_letters() -> None:
    assert main_script([("abc", 1), ("жук", 2)]) == "cyrillic"
    assert main_script([("abc", 5), ("жук", 2)]) == LATIN
    assert main_script([("1811", 3)]) == LATIN


def test_kana_tell_japanese_from_chinese() -> None:
    assert has_kana("誰が書いたか")
    assert has_kana("ﾀﾞｲｱﾙ")
    assert not has_kana("约翰・埃尔维在超级碗中为谁效力？")
