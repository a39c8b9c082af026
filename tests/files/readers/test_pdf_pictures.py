"""Pictures of a PDF's pages: rectangles of passages cover their letters, whatever way a page is turned or cut."""

import base64
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pypdf.generic import ArrayObject, DecodedStreamObject, DictionaryObject, NameObject, NumberObject

pytest.importorskip("pypdfium2", reason="the extra files is not installed")

from spscanner_rag.files.readers import pdf_pictures
from spscanner_rag.files.readers.pdf_pictures import MOST_PIXELS, Picture, pictures_of
from spscanner_rag.text.word_boxes import Box
from tests.files.readers.test_pdf import PdfOf, read_here
from tests.files.readers.test_pdf_marks import PAGES, turned


def ink(picture: Picture) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """The dark points of a grey picture: (height, width)."""
    png = base64.b64decode(picture.png)
    start = png.index(b"IDAT") + 4
    lines = np.frombuffer(zlib.decompressobj().decompress(png[start:]), np.uint8)
    return lines.reshape(picture.height, picture.width + 1)[:, 1:] < 100


def cut(writer: Any) -> None:
    """Pages of which a viewer shows a part only, that does not begin at the corner."""
    for page in writer.pages:
        page.cropbox.lower_left, page.cropbox.upper_right = (40, 300), (500, 800)


@pytest.mark.parametrize("finish", [turned(0, 0), turned(90, 90), turned(180, 0), cut])
def test_all_letters_of_a_page_are_in_the_rectangles_of_its_words(
    pdf_of: PdfOf, finish: Callable[[Any], None]
) -> None:
    pages = [["The mill was sold.", "Its wheel was of oak."], ["It burned down."], ["Nobody came."]]
    data = pdf_of(pages, finish=finish)
    document = read_here(data)
    last = document.text.index("Nobody")
    found = pictures_of(data, [document.boxes(last, last + 12), document.boxes(0, 39)])
    assert [(each.number, {place[0] for place in each.places}) for each in found] == [(1, {1}), (3, {0})]
    for picture in found:
        dark = ink(picture)
        around = dark.copy()
        for _, x, y, width, height in picture.places:
            assert dark[y : y + height, x : x + width].any()
            around[max(0, y - 1) : y + height + 1, max(0, x - 1) : x + width + 1] = False
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
    assert pictures_of(data, []) == pictures_of(data, [[]]) == pictures_of(b"%PDF-1.7", passages) == []


@pytest.mark.parametrize("size", [(9, 14_000), (14_000, 14_000), (0.01, 9), (612, 792)])
def test_a_page_of_any_size_has_a_bounded_picture(pdf_of: PdfOf, size: tuple[float, float]) -> None:
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
        for _ in range(levels):  # each draws the one before ten times
            stream = DecodedStreamObject()
            stream.set_data(b"/X Do\n" * 10 if form else b"0 0 400 400 re f\n" * 100)
            box = ArrayObject(map(NumberObject, (0, 0, 500, 500)))
            kind = {"/Type": NameObject("/XObject"), "/Subtype": NameObject("/Form"), "/BBox": box}
            stream.update({NameObject(key): value for key, value in kind.items()})
            inner = {} if form is None else {NameObject("/X"): form}
            forms = {NameObject("/XObject"): DictionaryObject(inner)}
            stream[NameObject("/Resources")] = DictionaryObject(forms)
            form = writer._add_object(stream)
        writer.pages[0][NameObject("/Contents")] = form
        writer.pages[0][NameObject("/Resources")] = stream["/Resources"]

    found = pictures_of(pdf_of(PAGES[:1], finish=nested), [[Box(1, 60, 600, 90, 620)]])
    assert len(found) == drawn
