"""Scanned pages are read by OCR, with the places of their words."""

import io
import os
import re
import shutil
import stat
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pypdfium2", reason="the extra files is not installed")

import pypdfium2

from spscanner_rag.files import read
from spscanner_rag.files.readers import pdf_ocr
from spscanner_rag.files.reading import read_bytes

Place = tuple[Any, ...]
DrawnPdf = Callable[[Sequence[Sequence[Place]]], bytes]

PAGE = [
    (72, 700, "The harbour of Saltmere", 24),
    (72, 650, "Anne signed the treaty in May. Rain fell on the mill, and", 12),
    (72, 634, "nobody came to the council of the town.", 12),
]
HEAD = "level\tpage\tblock\tpar\tline\tword\tleft\ttop\twidth\theight\tconf\ttext"
needs_tesseract = pytest.mark.skipif(
    shutil.which("tesseract") is None, reason="Tesseract is not installed"
)


def scan_of(data: bytes, rotation: int = 0) -> bytes:
    """A PDF whose pages are pictures of another one's."""
    source = pypdfium2.PdfDocument(data)
    scan = pypdfium2.PdfDocument.new()
    for page in source:
        width, height = page.get_size()
        picture = pypdfium2.PdfImage.new(scan)
        picture.set_bitmap(page.render(scale=200 / 72))
        picture.set_matrix(pypdfium2.PdfMatrix().scale(width, height))
        scanned_page = scan.new_page(width, height)
        scanned_page.insert_obj(picture)
        scanned_page.gen_content()
        scanned_page.set_rotation(rotation)
    file = io.BytesIO()
    scan.save(file)
    return file.getvalue()


@needs_tesseract
def test_a_scanned_page_is_read_with_exact_places(drawn_pdf: DrawnPdf) -> None:
    document = read_bytes("scan.pdf", scan_of(drawn_pdf([PAGE])), ocr="eng")
    assert "1 of 1 pages were read by OCR" in document.notes[0]
    start = document.text.index("treaty")
    ((page, left, bottom, right, top),) = document.boxes(start, start + 6)
    assert page == 1
    drawn = read_bytes("drawn.pdf", drawn_pdf([PAGE]))
    at = drawn.text.index("treaty")
    ((_, *expected),) = drawn.boxes(at, at + 6)
    # a drawn word's box is as high as its font, a recognized one's is tight
    assert abs(left - expected[0]) < 2
    assert abs(right - expected[2]) < 2
    assert expected[1] - 2 < bottom < top < expected[3] + 2


@needs_tesseract
def test_a_sentence_over_two_scanned_lines_is_whole(drawn_pdf: DrawnPdf) -> None:
    document = read_bytes("scan.pdf", scan_of(drawn_pdf([PAGE])), ocr="eng")
    text = " ".join(document.text.split())
    assert "Rain fell on the mill, and nobody came to the council" in text
    assert not [block for block in document.blocks if block.kind == "heading"]


@needs_tesseract
@pytest.mark.parametrize("turn", [90, 180])
def test_a_page_scanned_upside_down_is_read(drawn_pdf: DrawnPdf, turn: int) -> None:
    drawn = pypdfium2.PdfDocument(drawn_pdf([PAGE]))
    drawn[0].set_rotation(turn)
    file = io.BytesIO()
    drawn.save(file)
    document = read_bytes("scan.pdf", scan_of(file.getvalue()), ocr="eng")
    assert "Anne signed the treaty in May." in " ".join(document.text.split())


@needs_tesseract
def test_pages_with_text_are_not_recognized(drawn_pdf: DrawnPdf) -> None:
    data = drawn_pdf([PAGE])
    assert read_bytes("a.pdf", data, ocr="eng") == read_bytes("a.pdf", data)


def test_a_scan_without_ocr_names_the_option(drawn_pdf: DrawnPdf) -> None:
    with pytest.raises(ValueError, match=re.escape("`--ocr eng`")):
        read_bytes("scan.pdf", scan_of(drawn_pdf([PAGE])))


def test_without_tesseract_the_error_says_how_to_install_it(
    drawn_pdf: DrawnPdf, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ImportError, match=r"scan\.pdf: OCR needs .*apt install"):
        read_bytes("scan.pdf", drawn_pdf([PAGE]), ocr="eng")


def fake_tesseract(folder: Path, answer: str) -> None:
    """A program that answers as Tesseract does."""
    path = folder / "tesseract"
    path.write_text(
        f"#!{sys.executable}\n"
        "import sys\n"
        "if '--list-langs' in sys.argv:\n"
        "    print('List of available languages (2):\\neng\\nosd')\n"
        "else:\n"
        "    picture = sys.stdin.buffer.read()\n"
        "    assert picture.startswith(b'P5 '), picture[:20]\n"
        f"    print({answer!r})\n"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def word(line: int, left: int, top: int, text: str) -> str:
    """A word of Tesseract's table, 100 pixels wide and 40 high."""
    return f"5\t1\t1\t1\t{line}\t1\t{left}\t{top}\t100\t40\t96\t{text}"


@pytest.fixture
def tesseract(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[Sequence[str]], None]:
    """Puts a program in place of Tesseract that answers with these lines."""
    if os.name == "nt":
        pytest.skip("the program is a script")
    monkeypatch.setenv("PATH", str(tmp_path))

    def answers(lines: Sequence[str]) -> None:
        fake_tesseract(tmp_path, "\n".join(lines))

    return answers


def test_words_of_the_table_have_places(
    drawn_pdf: DrawnPdf, tesseract: Callable[[Sequence[str]], None]
) -> None:
    picture = "1\t1\t0\t0\t0\t0\t0\t0\t2479\t3508\t-1\t"
    rows = [HEAD, picture, word(1, 300, 600, "Anne"), word(1, 420, 600, "left.")]
    blank = word(1, 540, 600, " ")
    tesseract([*rows, blank, "5\tbroken", word(2, 300, 660, "no").replace("660", "x")])
    document = read_bytes("scan.pdf", scan_of(drawn_pdf([PAGE])), ocr="eng")
    assert document.text == "Anne left."
    ((_, left, bottom, right, top),) = document.boxes(0, 4)
    # pixels of 1/300 inch from the upper left, points from the lower left
    assert (left, right) == pytest.approx((72, 96), abs=0.2)
    assert (bottom, top) == pytest.approx((842 - 153.6, 842 - 144), abs=0.3)


def test_cells_far_apart_are_a_row(
    drawn_pdf: DrawnPdf, tesseract: Callable[[Sequence[str]], None]
) -> None:
    rows = [HEAD]
    for number, (goods, price) in enumerate([("Flour", "12"), ("Oil", "40")]):
        top = 600 + 60 * number
        rows += [word(number, 300, top, goods), word(number, 1500, top, price)]
    tesseract(rows)
    document = read_bytes("scan.pdf", scan_of(drawn_pdf([PAGE])), ocr="eng")
    kinds = [block.kind for block in document.blocks]
    texts = [document.text[block.start : block.end] for block in document.blocks]
    assert kinds == ["row", "row"]
    assert texts == ["Flour  12", "Oil  40"]


def test_boxes_of_a_rotated_scan_are_those_of_the_page(
    drawn_pdf: DrawnPdf, tesseract: Callable[[Sequence[str]], None]
) -> None:
    tesseract([HEAD, word(1, 300, 600, "Anne")])
    scan = scan_of(drawn_pdf([PAGE]), rotation=90)
    document = read_bytes("scan.pdf", scan, ocr="eng")
    ((_, left, bottom, right, top),) = document.boxes(0, 4)
    # turned clockwise, what is shown to the right is above on the page
    assert (left, right) == pytest.approx((144, 153.6), abs=0.3)
    assert (bottom, top) == pytest.approx((72, 96), abs=0.3)


def test_a_program_that_answers_nothing_leaves_a_page_without_text(
    drawn_pdf: DrawnPdf, tesseract: Callable[[Sequence[str]], None]
) -> None:
    tesseract([""])
    with pytest.raises(ValueError, match="without text"):
        read_bytes("scan.pdf", scan_of(drawn_pdf([PAGE])), ocr="eng")


@pytest.mark.parametrize("languages", ["--psm 0", "eng;ls", "../eng", "eng+", "-l"])
def test_languages_are_names(drawn_pdf: DrawnPdf, languages: str) -> None:
    with pytest.raises(ValueError, match="expected languages as Tesseract names"):
        read_bytes("a.pdf", drawn_pdf([PAGE]), ocr=languages)


def test_missing_data_of_a_language_is_named(
    drawn_pdf: DrawnPdf, tesseract: Callable[[Sequence[str]], None]
) -> None:
    tesseract([HEAD])
    with pytest.raises(ValueError, match="no data for deu; expected one of eng, osd"):
        read_bytes("a.pdf", drawn_pdf([PAGE]), ocr="eng+deu")


def test_a_text_file_needs_no_ocr(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf_ocr, "PROGRAM", "no-such-program")
    path = tmp_path / "a.txt"
    path.write_text("It rained.")
    assert read(path, ocr="eng").text == "It rained."
