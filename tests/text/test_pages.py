"""Pages: repeated headers and footers are found, and nothing else.

Whether a sentence runs on over a break.
"""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_rag.text.pages import LONGEST_LINE, page_bodies, sentence_goes_on

BODIES = [
    "The well was dry.\nNobody knew why.",
    "A ship came in.",
    "The bell rang.\n\nThen it rained.",
    "It ended.",
]


def bodies(pages: Sequence[str], first: float = 1) -> list[str]:
    spans = page_bodies(pages, [first + number for number in range(len(pages))])
    return [page[start:end] for page, (start, end) in zip(pages, spans, strict=True)]


def stripped(pages: Sequence[str], first: float = 1) -> list[str]:
    return [body.strip() for body in bodies(pages, first)]


@pytest.mark.parametrize(
    ("header", "footer"),
    [
        ("Annual Report 2024\n", ""),
        ("", "\nPage {} of 4"),
        ("Port Elm  Society\n\n", "\n{}\n"),
        ("{}\tHistory of the town\nDraft 3\n", "\n\n- {} -"),
        ("PORT ELM\n", "\n(c) 2024 Port Elm\nPage {}\n\n"),
        ("\n \nPort Elm\r\n", "\r\n{}\r\n"),
    ],
)
@pytest.mark.parametrize("first", [0, 1, 117])
def test_repeated_lines_and_page_numbers_are_left_out(
    header: str, footer: str, first: int
) -> None:
    pages = [
        header.format(number) + body + footer.format(number)
        for number, body in enumerate(BODIES, start=first)
    ]
    assert (
        stripped(pages, 1) == BODIES
    )  # the printed number may differ from the number of the page
    assert stripped(pages, first) == BODIES


def test_headers_of_left_and_right_pages() -> None:
    headers = ["Jane Austen", "Persuasion"] * 4
    pages = [
        f"{header}\nText of page {'abcdefgh'[n]}." for n, header in enumerate(headers)
    ]
    assert stripped(pages) == [f"Text of page {letter}." for letter in "abcdefgh"]


def test_a_page_without_the_header_stays_whole() -> None:
    pages = ["A Title Page", *(f"Report\n{body}" for body in BODIES)]
    assert stripped(pages) == ["A Title Page", *BODIES]


@pytest.mark.parametrize(
    "pages",
    [
        [],
        ["Report\nOne."],
        ["Report\nOne.", "Report\nTwo."],  # too few to tell
        [
            f"{number * number}\nText {'abcd'[number]}." for number in range(4)
        ],  # no page numbers
        ["a\nOne.", "b\nTwo.", "a\nThree.", "c\nFour."],  # on two pages of four
        ["Report", "Report", "Report", "Report"],  # nothing else on the page
        [f"{'long ' * LONGEST_LINE}\n{body}" for body in BODIES],
        [
            f"Line {n * n}.\nx\ny\nReport\nz\nv\nw {n * n}" for n in range(4)
        ],  # in the middle of the page
        ["", " \n ", "", ""],
        [f"{body}\nPayment is due within 30 days." for body in BODIES],
    ],
    ids=str,
)
def test_all_other_text_is_kept(pages: list[str]) -> None:
    assert bodies(pages) == pages


LINES = st.lists(st.text(st.sampled_from("ab1 \t."), max_size=6), max_size=8).map(
    "\n".join
)


@settings(max_examples=100)
@given(st.lists(LINES, max_size=8))
def test_bodies_are_spans_between_whole_lines(pages: list[str]) -> None:
    for page, (start, end) in zip(
        pages, page_bodies(pages, range(len(pages))), strict=True
    ):
        assert 0 <= start <= end <= len(page)
        assert start == 0 or page[start - 1] == "\n"
        assert end == len(page) or page[end - 1] == "\n"
        assert (
            page[start:end].strip()
            or not page.strip()
            or (start, end) == (0, len(page))
        )
        left_out = page[:start].strip().splitlines() + page[end:].strip().splitlines()
        assert len([line for line in left_out if line.strip()]) <= 6


FULL_LINES = "\nline as long as this\nline as long as these\n"


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
        (f"{FULL_LINES}He was met there by", f"Captain Moore of the{FULL_LINES}", True),
        (f"{FULL_LINES}Notes", f"Captain Moore of the{FULL_LINES}", False),
        (f"{FULL_LINES}He was met there by", f"Notes{FULL_LINES}", False),
        ("", "harbour", False),
        ("The", "  ", False),
        ("...", "...", False),
    ],
)  # fmt: skip
def test_whether_a_sentence_goes_on(before: str, after: str, goes_on: bool) -> None:
    assert sentence_goes_on(before, after) is goes_on
