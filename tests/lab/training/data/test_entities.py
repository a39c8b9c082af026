import pytest

from spscanner_rag.lab.training.data.entities import entities


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("When did Anne of Cleves marry?", [("name", "Anne of Cleves")]),
        ("Was it 1908 or 12.5 tons?", [("year", "1908"), ("number", "12.5")]),
        ("Anne left.", []),  # a capital at the start says nothing
        ("no such words", []),
        ("", []),
    ],
)
def test_names_years_and_numbers(text: str, found: list[tuple[str, str]]) -> None:
    assert [(match.lastgroup, match.group()) for match in entities(text)] == found
