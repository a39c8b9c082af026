"""Offsets in UTF-16 and in bytes."""

import numpy as np
import pytest

from spscanner_rag.results.offsets import convert_offsets

TEXTS = [
    "",
    "Plain text.",
    "Grüße aus Köln",
    "東京 is a city",
    "A 🦊 ran, 🐕 too.",
    "one \ud800 half",
    "é🦊\udfff",
]


@pytest.mark.parametrize("text", TEXTS)
def test_offsets_are_those_of_what_is_encoded(text: str) -> None:
    all_of_them = np.arange(len(text) + 1)
    whole = text.encode("utf-16", "surrogatepass").decode(
        "utf-16", "replace"
    )  # U+FFFD for half a pair
    assert (
        convert_offsets(text, all_of_them, "characters").tolist()
        == all_of_them.tolist()
    )
    for unit, encoding, size in (("bytes", "utf-8", 1), ("utf16", "utf-16-le", 2)):
        expected = [
            len(whole[:offset].encode(encoding)) // size for offset in all_of_them
        ]
        assert convert_offsets(text, all_of_them, unit).tolist() == expected  # type: ignore[arg-type]


def test_another_way_of_counting_is_refused() -> None:
    with pytest.raises(
        ValueError,
        match="offsets: got 'lines'; expected one of characters, utf16, bytes",
    ):
        convert_offsets("a", np.array([0]), "lines")  # type: ignore[arg-type]
