"""Pages of PDFs joined: nothing is lost, and no sentence is cut or mixed."""

import io
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pypdfium2", reason="the extra files is not installed")

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.pdf import converted, read_pages
from spscanner_rag.text.block_segmentation import segment_blocks
from spscanner_rag.text.segmentation import SentenceSegmenter

Place = tuple[Any, ...]
DrawnPdf = Callable[[Sequence[Sequence[Place]]], bytes]

FILL = "It rained for a week. Nobody came to the harbour of the town."


def column(
    left: float, top: float, lines: Sequence[str], size: float = 10, step: float = 13
) -> list[Place]:
    """Lines below each other."""
    return [(left, top - step * n, line, size) for n, line in enumerate(lines)]


def read_here(data: bytes) -> TextFile:
    first, *pages = read_pages(data)
    return converted(first, pages)


def units_of(document: TextFile) -> list[str]:
    """The sentences and rows of a document, without line breaks."""
    cut = SentenceSegmenter("en").segment
    units = segment_blocks(document.text, document.blocks, cut)
    return [" ".join(document.text[unit.start : unit.end].split()) for unit in units]


def test_what_repeats_on_invoices_is_read_once(drawn_pdf: DrawnPdf) -> None:
    pages = []
    for number, name in enumerate(("Anne", "Bob", "Carl", "Dora")):
        lines = [
            "The mill at Riga, by the old bridge",
            f"Invoice {number + 17} to {name}, who bought flour.",
            f"The flour was brought on {number + 3} May 1811.",
            "Payment is due within 30 days.",
        ]
        pages.append(column(72, 700, lines))
    document = read_here(drawn_pdf(pages))
    units = units_of(document)
    assert units.count("The mill at Riga, by the old bridge") == 1
    assert units.count("Payment is due within 30 days.") == 1
    for day in (3, 4, 5, 6):
        assert f"The flour was brought on {day} May 1811." in units
    (note,) = document.notes
    assert '"Payment is due within 30 days." (pages 1 to 4)' in note


def test_titles_at_page_edges_are_left_out_and_named(drawn_pdf: DrawnPdf) -> None:
    pages = []
    for number in range(1, 5):
        body = column(72, 700, [f"House {number * number} was empty."])
        head = (72, 760, "Report of the council", 9)
        pages.append([head, *body, (300, 30, str(number), 9)])
    document = read_here(drawn_pdf(pages))
    assert "Report" not in document.text
    assert "\n4" not in document.text
    assert document.notes == (
        'left out at page edges: "Report of the council" (pages 1 to 4)',
    )


def test_bold_and_large_paragraphs_are_text(drawn_pdf: DrawnPdf) -> None:
    warning = [
        "Do not open the valve under pressure. The lid may burst",
        "and the operator who stands near it will be scalded.",
    ]
    lead = ["After a war the northern towns have", "made peace with Riga."]
    page = [
        (72, 760, "Peace", 24),
        *column(72, 720, lead, 14, 18),
        *column(72, 640, [FILL]),
        *column(72, 627, warning, -10),
        *column(72, 601, [FILL, FILL]),
    ]
    document = read_here(drawn_pdf([page]))
    assert [block.title for block in document.blocks] == ["Peace"]
    units = units_of(document)
    assert "After a war the northern towns have made peace with Riga." in units
    assert "Do not open the valve under pressure." in units


def test_rows_are_units_with_their_head(drawn_pdf: DrawnPdf) -> None:
    page = [(72, 712, "Part"), (250, 712, "Size"), (400, 712, "Price")]
    for number in range(4):
        base = 690 - 16 * number
        page.append((72, base, f"Valve {100 + number}"))
        page.append((250, base, f"brass, {10 + number} mm"))
        page.append((400, base, f"{number}.50 marks"))
    document = read_here(drawn_pdf([page]))
    units = units_of(document)
    assert units[0] == "Part Size Price"
    assert units[3] == "Valve 102 brass, 12 mm 2.50 marks"
    head = document.text.index("Part")
    headers = [block.header for block in document.blocks]
    assert headers == [None, *[(head, head + len("Part  Size  Price"))] * 4]


def test_a_bold_sum_is_a_row(drawn_pdf: DrawnPdf) -> None:
    page = column(72, 700, [FILL]) + column(72, 687, ["Total due   1,250 marks"], -10)
    document = read_here(drawn_pdf([page + column(72, 674, [FILL])]))
    assert "Total due 1,250 marks" in units_of(document)


def test_footnotes_cut_no_sentence(drawn_pdf: DrawnPdf) -> None:
    first = [
        "It rained in the harbour all day long and the",
        "council of the towns met there. It signed the",
        "treaty with the captain and then the",
    ]
    note = (72, 100, "1 The ledger has another date.", 7)
    second = ["whole town went home. Nobody spoke of it."]
    pages = [[*column(72, 700, first), note], column(72, 700, second)]
    document = read_here(drawn_pdf(pages))
    units = units_of(document)
    assert "1 The ledger has another date." in units
    whole = "It signed the treaty with the captain and then the whole town went home."
    assert whole in units
    assert document.page(document.text.index("ledger")).number == 1  # type: ignore[union-attr]


WORDS = st.text("abcdefgh", min_size=2, max_size=8)
PLACES = st.tuples(
    st.integers(20, 500),
    st.integers(2, 24).map(lambda line: 32 * line),
    st.lists(WORDS, min_size=1, max_size=6).map(" ".join),
    st.sampled_from([7, 10, -10, 14, 30]),
)
# Letters that are drawn twice at one place, as some programs make bold, count once.
PAGES = st.lists(PLACES, max_size=10, unique_by=lambda place: place[1])


@settings(max_examples=15, deadline=None)
@given(st.lists(PAGES, min_size=1, max_size=4))
def test_every_word_of_another_reader_is_in_a_unit(
    drawn_pdf: DrawnPdf, pages: list[list[Place]]
) -> None:
    from pypdf import PdfReader

    data = drawn_pdf(pages)
    expected: Counter[str] = Counter()
    for page in PdfReader(io.BytesIO(data)).pages:
        expected.update(re.findall("[a-h]", page.extract_text()))
    try:
        document = read_here(data)
    except ValueError:
        assert not expected
        return
    cut = SentenceSegmenter("en").segment
    units = segment_blocks(document.text, document.blocks, cut)
    read = Counter(re.findall("[a-h]", "".join(unit.model_text for unit in units)))
    if not document.notes:
        assert expected <= read
    words = document.words
    assert words is not None
    assert (words[1:, 0] >= words[:-1, 1]).all()
