"""The words of texts and queries, and their stems."""

import pytest

from spscanner_rag.lexical import words as words_module
from spscanner_rag.lexical.words import index_words, query_stems
from spscanner_rag.text.languages import CJK


@pytest.mark.parametrize(
    ("query", "stems"),
    [
        ("Who signed the treaty?", ["sign", "treati"]),
        ("Signing, signed; SIGNS!", ["sign"]),
        ("Was it on the 14 May 1911?", ["1911-05-14", "1911-05", "14", "may", "1911"]),
        ("who is it", ["who", "is", "it"]),  # stop words alone are better than nothing
        ("The who", ["the", "who"]),
        ("don't", ["don"]),
        ("\u0663 ships, \uff14\uff12 boats", ["3", "ship", "42", "boat"]),
        ("snake_case __init__", ["snake_cas", "__init__"]),
        ("Café Ωμέγα Москва", ["café", "ωμέγα", "москва"]),
        ("東京 はどこ", ["東京", "はどこ"]),
        ("?! …", []),
        ("", []),
        ("\ud800 lighthouse \udfff", ["lighthous"]),
    ],
)
def test_query_stems(query: str, stems: list[str]) -> None:
    assert list(query_stems(query)) == stems


@pytest.mark.parametrize("language", [None, CJK])
def test_a_long_text_is_indexed_piece_by_piece(
    monkeypatch: pytest.MonkeyPatch, language: str | None
) -> None:
    units, pauses = ["The ship sails. "] * 40, []
    whole = index_words(units, language)
    monkeypatch.setattr(words_module, "_PART_CHARACTERS", 64)
    pieces = index_words(units, language, lambda: pauses.append(None))
    assert len(pauses) == 9  # 40 units of 16 characters, four in a piece
    assert pieces.starts.tolist() == whole.starts.tolist()
    assert (pieces.vocabulary, pieces.of_stem) == (whole.vocabulary, whole.of_stem)


def test_more_repeats_than_two_bytes_hold() -> None:
    assert index_words(["ship " * 70_000]).postings.times.tolist() == [65_535]
