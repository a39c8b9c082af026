"""Words that were divided at the ends of lines."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.text.divided_words import join_divided_words


@pytest.mark.parametrize(
    ("page", "written"),
    [
        ("Its inﬂuence on the oﬃce.", "Its influence on the office."),
        ("The repre-\nsentation of the towns.", "The representation\nof the towns."),
        ("The repre\u2010\n  sentation", "The representation"),
        ("The repre-\nsentation,\nthen", "The representation,\nthen"),
        (
            "a well-\nknown case; a well-known one",
            "a well-known\ncase; a well-known one",
        ),
        ("a self-\ncontained self, contained", "a self-contained\nself, contained"),
        (
            "an-\nother case, or another, an other",
            "another\ncase, or another, an other",
        ),
        ("soft\u00ad\nly", "softly"),
        ("hard\u00ac\nly", "hardly"),
        ("Die Hand- und Fuß-\r\nnoten", "Die Hand- und Fußnoten"),
        ("inter-\nna-\ntional law", "interna-\ntional law"),
        (
            "Jean-\nPaul in 1914-\n18 said --\nno: - \nyes -",
            "Jean-\nPaul in 1914-\n18 said --\nno: - \nyes -",
        ),
        ("last-", "last-"),
    ],
)
def test_words_are_as_they_were_written(page: str, written: str) -> None:
    assert join_divided_words([page]) == [written]


def test_other_pages_tell_whether_a_hyphen_stays() -> None:
    assert join_divided_words(["a re-\ncover", "The Re-cover"]) == [
        "a re-cover",
        "The Re-cover",
    ]
    assert (
        join_divided_words(["a re-\ncover", "They recover. A re-cover. I recover."])[0]
        == "a recover"
    )


@given(st.lists(st.text("ab-\u2010\u00adB1 \n\t.é", max_size=30), max_size=4))
def test_only_hyphens_and_white_space_at_ends_of_lines_change(pages: list[str]) -> None:
    def letters(text: str) -> str:
        return re.sub(r"[-\u2010\u00ad\s]", "", text)

    written = join_divided_words(pages)
    assert list(map(letters, written)) == list(map(letters, pages))
    for before, after in zip(pages, written, strict=True):
        assert "\n" in before or after == before
        assert after.count("\n") <= before.count("\n")
        assert all(after.count(sign) <= before.count(sign) for sign in "-\u2010\u00ad")


@pytest.mark.slow
def test_joining_words_takes_linear_time() -> None:
    for hostile in (
        "-\n" * 300_000,
        "a" * 600_000,
        "a-\n" * 200_000,
        "- " * 300_000,
        "-" + " " * 600_000,
    ):
        assert len(join_divided_words([hostile])[0]) <= len(hostile)
