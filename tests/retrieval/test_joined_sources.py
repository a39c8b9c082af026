"""Pages of one document: sentences over page breaks, running lines, exact spans."""

import random
from collections.abc import Hashable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_rag.results import Selection
from spscanner_rag.retrieval import Piece, join_pieces
from spscanner_rag.retrieval.joined_sources import CONTINUED
from spscanner_rag.retrieval.joined_text import JoinedText
from tests.fakes import EQUAL
from tests.retrieval.searching import search


def page(text: str, number: int, **options: Any) -> Piece:
    options = {
        "key": f"p{number}",
        "source": number,
        "start": 0,
        "last": True,
    } | options
    return Piece(text=text, group="file", position=number, page=True, **options)


def joined(*pieces: Piece, sources: dict[Hashable, str] | None = None) -> JoinedText:
    (text,) = join_pieces(pieces, sources)
    return text


def sentences(text: JoinedText) -> list[str]:
    return [
        hit.text
        for hit in search(EQUAL, "x", [text], Selection(top_k=None, order="document"))
    ]


def test_a_sentence_over_a_page_break_is_one() -> None:
    first, second = (
        "It rained. The council signed a \n\n",
        "\ntreaty with the towns. Then they left.",
    )
    text = joined(page(first, 1), page(second, 2))
    assert sentences(text) == [
        "It rained.",
        f"The council signed a{CONTINUED}treaty with the towns.",
        "Then they left.",
    ]
    start = text.text.index("The council")
    end = text.text.index(" Then")
    one, two = text.places_by_run(start, end)
    assert one == text.place(start, end)
    assert first[one.source_start : one.source_end] == "The council signed a"
    assert second[two.source_start : two.source_end] == "treaty with the towns."
    assert (one.source, two.source) == (1, 2)
    assert (one.piece_number, two.piece_number) == (0, 1)
    assert (one.piece_start, one.piece_end) == (one.source_start, one.source_end)


@pytest.mark.parametrize(
    "pages",
    [
        [page("signed a", 1), page("treaty.", 3)],  # a page is missing
        [page("signed a", 1, last=False), page("treaty.", 2)],  # more may follow
        [page("signed a", 1), page("treaty.", 2, start=7)],  # text is missing before
        [page("signed a", 1), page("treaty.", 2, start=None)],
        [page("signed a.", 1), page("treaty.", 2)],
    ],
    ids=[
        "page missing",
        "rest missing",
        "beginning missing",
        "offset missing",
        "sentence ends",
    ],
)
def test_pages_that_do_not_follow_each_other_are_not_joined(pages: list[Piece]) -> None:
    assert len(sentences(joined(*pages))) == 2


WORDS = st.lists(
    st.sampled_from(
        "The the harbour Ship left. rained, 7 of (a) Ünder 東京 x? \n \n\n".split(" ")
    ),
    max_size=30,
)
HEADERS = st.sampled_from(["", "Report\n", "Page {}\n", "\nReport 9\n\n{}\n"])
FOOTERS = st.sampled_from(["", "\n{}", "\nReport\n", "\n\n{} of 9\n"])


@settings(max_examples=80)
@given(
    st.lists(WORDS, min_size=1, max_size=6),
    HEADERS,
    FOOTERS,
    st.integers(4, 60),
    st.integers(0, 30),
    st.integers(),
)
def test_every_part_of_every_sentence_stands_in_its_page(
    words: list[list[str]], header: str, footer: str, size: int, overlap: int, seed: int
) -> None:
    """Pages, whole or cut: spans are exact, and no text is lost or repeated."""
    generator = random.Random(seed)
    pages = {
        number: header.format(number) + " ".join(own) + footer.format(number)
        for number, own in enumerate(words, start=1)
    }
    pieces = []
    for number, text in pages.items():
        starts = (
            [0]
            if generator.random() < 0.5
            else range(0, max(1, len(text)), max(1, size - overlap))
        )
        reach = len(text) if len(list(starts)) == 1 else size
        for start in starts:
            last = start + reach >= len(text)
            pieces.append(
                page(
                    text[start : start + reach],
                    number,
                    start=start,
                    key=f"{number}.{start}",
                    last=last,
                )
            )
    generator.shuffle(pieces)
    text = joined(*pieces)
    seen: dict[Hashable, str] = {}
    for hit in search(EQUAL, "x", [text], Selection(top_k=None, order="document")):
        parts = list(text.places_by_run(hit.start, hit.end))
        stand = [
            pages[place.source][place.source_start : place.source_end]
            for place in parts
        ]
        assert CONTINUED.join(stand) == hit.text == text.text[hit.start : hit.end]
        for place in parts:
            if place.piece_start is not None:
                own = pieces[place.piece_number].text[
                    place.piece_start : place.piece_end
                ]
                assert own == pages[place.source][place.source_start : place.source_end]
        for place, part in zip(parts, stand, strict=True):
            seen[place.source] = seen.get(place.source, "") + "".join(part.split())
    for number, own in enumerate(words, start=1):
        whole, read = "".join(pages[number].split()), seen.get(number, "")
        assert "".join(" ".join(own).split()) in read or not read or read in whole
        # Unread text consists of the lines of header and footer, or of repeats like
        # these.
        if not header and not footer and len(words) < 3:
            assert read == whole
