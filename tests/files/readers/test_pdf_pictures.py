"""Pictures of pages with passages, and the boxes of their words."""

import base64
import re
import zlib
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pypdfium2", reason="the extra files is not installed")

import pypdf
import pypdfium2
from pypdf.generic import (
    ArrayObject,
    DecodedStreamObject,
    DictionaryObject,
    NameObject,
    NumberObject,
)

from spscanner_rag.files.readers import pdf_pictures
from spscanner_rag.files.readers.pdf_pictures import (
    MOST_PIXELS,
    Picture,
    pictures_of,
)
from spscanner_rag.text.word_boxes import WORDS_KEY, Box, boxes_of, unpacked
from tests.files.readers.test_pdf import PdfOf, read_here

PAGES = [
    [
        "Mill News",
        "The mill by the weir was sold twice. Its wheel was",
        "of oak. The miller repre-",
        "1",
    ],
    [
        "Mill News",
        "sents the valley in the council.",
        "He has two daughters (and a dog).",
        "2",
    ],
    ["Mill News", "Nobody has seen the dog.", "It is said to bark at night.", "3"],
]


def turned(page: int, letters: int) -> Callable[[Any], None]:
    """Pages that a viewer turns.

    Their letters are half as large and turned the other way.
    """

    def turn(writer: Any) -> None:
        for each in writer.pages:
            by = (
                pypdf.Transformation()
                .scale(0.5)
                .translate(-150, -200)
                .rotate(letters)
                .translate(300, 400)
            )
            each.add_transformation(by)
            each.rotate(page)

    return turn


def ink(picture: Picture) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """The dark points of a grey picture: (height, width)."""
    png = base64.b64decode(picture.png)
    start = png.index(b"IDAT") + 4
    lines = np.frombuffer(zlib.decompressobj().decompress(png[start:]), np.uint8)
    return lines.reshape(picture.height, picture.width + 1)[:, 1:] < 100


def cut(writer: Any) -> None:
    """Pages of which a viewer shows only a part that does not begin at the corner."""
    for page in writer.pages:
        page.cropbox.lower_left, page.cropbox.upper_right = (40, 300), (500, 800)


@pytest.mark.parametrize("finish", [turned(0, 0), turned(90, 90), turned(180, 0), cut])
def test_all_letters_of_a_page_are_in_the_rectangles_of_its_words(
    pdf_of: PdfOf, finish: Callable[[Any], None]
) -> None:
    pages = [
        ["The mill was sold.", "Its wheel was of oak."],
        ["It burned down."],
        ["Nobody came."],
    ]
    data = pdf_of(pages, finish=finish)
    document = read_here(data)
    last = document.text.index("Nobody")
    found = pictures_of(data, [document.boxes(last, last + 12), document.boxes(0, 39)])
    assert [(each.number, {place[0] for place in each.places}) for each in found] == [
        (1, {1}),
        (3, {0}),
    ]
    for picture in found:
        dark = ink(picture)
        around = dark.copy()
        for _, x, y, width, height in picture.places:
            assert dark[y : y + height, x : x + width].any()
            around[max(0, y - 1) : y + height + 1, max(0, x - 1) : x + width + 1] = (
                False
            )
        assert not around.any()


def test_pages_and_bytes_are_bounded_and_the_best_come_first(
    pdf_of: PdfOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = pdf_of(PAGES)
    passages = [[Box(page, 60, 600, 90, 620)] for page in (3, 1, 2, 9)]
    monkeypatch.setattr(pdf_pictures, "MOST_PAGES", 2)
    one, other = pictures_of(data, passages)
    assert (one.number, other.number) == (1, 3)
    monkeypatch.setattr(pdf_pictures, "MOST_BYTES", max(len(one.png), len(other.png)))
    assert [each.number for each in pictures_of(data, passages)] == [3]
    assert (
        pictures_of(data, [])
        == pictures_of(data, [[]])
        == pictures_of(b"%PDF-1.7", passages)
        == []
    )


@pytest.mark.parametrize("size", [(9, 14_000), (14_000, 14_000), (0.01, 9), (612, 792)])
def test_a_page_of_any_size_has_a_bounded_picture(
    pdf_of: PdfOf, size: tuple[float, float]
) -> None:
    def sized(writer: Any) -> None:
        writer.pages[0].mediabox.upper_right = size

    for picture in pdf_pictures._drawn(pdf_of(PAGES[:1], finish=sized), (1, [])):
        assert picture["width"] * picture["height"] <= 1.01 * MOST_PIXELS + 8_000


def test_what_ends_the_reading_is_raised(pdf_of: PdfOf) -> None:
    def check() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        pictures_of(pdf_of(PAGES) + b" " * 2**22, [[Box(1, 60, 600, 90, 620)]], check)


@pytest.mark.slow
@pytest.mark.parametrize(("levels", "drawn"), [(1, 1), (2, 1), (9, 0)])
def test_a_page_that_would_be_drawn_for_ever_is_left_out(
    pdf_of: PdfOf, monkeypatch: pytest.MonkeyPatch, levels: int, drawn: int
) -> None:
    if not drawn:
        monkeypatch.setattr(pdf_pictures, "SECONDS", 2.0)

    def nested(writer: Any) -> None:
        form = None
        for _ in range(levels):  # each draws the previous one ten times
            stream = DecodedStreamObject()
            stream.set_data(b"/X Do\n" * 10 if form else b"0 0 400 400 re f\n" * 100)
            box = ArrayObject(map(NumberObject, (0, 0, 500, 500)))
            kind = {
                "/Type": NameObject("/XObject"),
                "/Subtype": NameObject("/Form"),
                "/BBox": box,
            }
            stream.update({NameObject(key): value for key, value in kind.items()})
            inner = {} if form is None else {NameObject("/X"): form}
            forms = {NameObject("/XObject"): DictionaryObject(inner)}
            stream[NameObject("/Resources")] = DictionaryObject(forms)
            form = writer._add_object(stream)
        writer.pages[0][NameObject("/Contents")] = form
        writer.pages[0][NameObject("/Resources")] = stream["/Resources"]

    found = pictures_of(pdf_of(PAGES[:1], finish=nested), [[Box(1, 60, 600, 90, 620)]])
    assert len(found) == drawn


@pytest.mark.parametrize(
    "finish", [turned(0, 0), turned(90, 90), turned(90, 0), turned(0, 270)]
)
@pytest.mark.parametrize(
    ("sentence", "shown"),
    [
        (
            "The mill by the weir was sold twice.",
            [(1, "The mill by the weir was sold twice.")],
        ),
        ("Its wheel was\nof oak.", [(1, "Its wheel was"), (1, "of oak.")]),
        (
            "The miller repre-\nsents the valley in the council.",
            [(1, "The miller repre"), (2, "sents the valley in the council.")],
        ),
        (
            "He has two daughters (and a dog).",
            [(2, "He has two daughters (and a dog).")],
        ),
    ],
)
def test_the_text_in_the_boxes_is_the_sentence(
    pdf_of: PdfOf,
    finish: Callable[[Any], None],
    sentence: str,
    shown: list[tuple[int, str]],
) -> None:
    data = pdf_of(PAGES, finish=finish)
    document = read_here(data)
    start = document.text.index(sentence)
    boxes = document.boxes(start, start + len(sentence))
    pages = pypdfium2.PdfDocument(data)
    texts = [
        (box[0], pages[box[0] - 1].get_textpage().get_text_bounded(*box[1:]))
        for box in boxes
    ]
    assert [(page, text.strip("\2\ufffe- \r\n")) for page, text in texts] == shown


def test_a_word_that_is_whole_again_stands_in_two_places(pdf_of: PdfOf) -> None:
    document = read_here(
        pdf_of([["It was a good repre-", "sentation of the", "valley."]])
    )
    start = document.text.index("representation")
    first, second = document.boxes(start, start + len("representation"))
    assert first.y0 > second.y0
    assert first.x0 > second.x0 == 60


@pytest.mark.parametrize("number", [0, 1, 2])
def test_the_metadata_of_a_page_hold_its_words(pdf_of: PdfOf, number: int) -> None:
    document = read_here(pdf_of(PAGES))
    page, text = document.page_texts()[number]
    metadata = document.page_metadata(page)
    known = unpacked(metadata[WORDS_KEY])
    assert known is not None
    assert (metadata["page_label"], known[0]) == (page.label, page.number)
    for word in re.finditer(r"\S+", text):
        own = boxes_of(known[1], *word.span(), lambda _: page.number)
        assert own == document.boxes(page.start + word.start(), page.start + word.end())
        assert own


@pytest.mark.parametrize(
    "text", ["", "1", "1:", "x:eJw=", "1:no base64", "2:" + b64encode(b"x").decode()]
)
def test_words_that_were_cut_have_no_boxes(text: str) -> None:
    known = unpacked(text)
    assert known is None or not len(known[1])
