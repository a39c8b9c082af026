"""Whether a sentence goes on over the break between two pages."""

import pytest

from spscanner_rag.text.pages import sentence_goes_on

LINES = "\nline as long as this\nline as long as these\n"


@pytest.mark.parametrize(
    ("before", "after", "goes_on"),
    [
        ("He left for the", "harbour in May.", True),
        ("He left for the \n", "\n harbour in May.", True),
        ("He met the mayor,", "Mr Moore, there.", True),
        ("It was well-", "known.", True),
        ("He said (in the", '"old" town) no.', True),
        ("He left.", "it rained.", False),
        ("He left.”", "and more", False),
        ("Chapter One", "The harbour was old.", False),
        ("Did he leave?", "Nobody knew.", False),
        ("The towns are", "- Elm", False),
        ("The towns are", "1. Elm", False),
        ("The towns are", "2.1 Elm", False),
        ("The towns are", "a) Elm", False),
        (f"{LINES}He was met there by", f"Captain Moore of the{LINES}", True),
        (f"{LINES}Notes", f"Captain Moore of the{LINES}", False),
        (f"{LINES}He was met there by", f"Notes{LINES}", False),
        ("", "harbour", False),
        ("The", "  ", False),
        ("...", "...", False),
    ],
)  # fmt: skip
def test_whether_a_sentence_goes_on(before: str, after: str, goes_on: bool) -> None:
    assert sentence_goes_on(before, after) is goes_on
