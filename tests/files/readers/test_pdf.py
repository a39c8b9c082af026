"""PDF: pages, labels, running lines; broken, locked and scanned files."""

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pypdf", reason="the extra files is not installed")

from spscanner_rag.files.readers.pdf import read_pdf

PdfOf = Callable[..., bytes]

PAGES = [
    ["The Treaty", "It rained in the harbour all day long.", "The council of the towns signed a", "1"],
    ["The Treaty", "treaty with the captain (again).", "Then they left the harbour for good.", "2"],
    ["The Treaty", "Nobody came back to the harbour.", "It is said that the well was dry.", "3"],
]


def test_pages_without_running_lines(pdf_of: PdfOf) -> None:
    found = read_pdf("a.pdf", pdf_of(PAGES))
    assert found.text == (
        "It rained in the harbour all day long.\nThe council of the towns signed a\n"
        "treaty with the captain (again).\nThen they left the harbour for good.\n\n"
        "Nobody came back to the harbour.\nIt is said that the well was dry."
    )
    starts = [found.text.index(word) for word in ("It rained", "treaty with", "Nobody")]
    assert [(page.start, page.number, page.label) for page in found.pages] == [
        (start, number, str(number)) for number, start in enumerate(starts, start=1)
    ]
    assert found.notes == ()


def test_words_that_lines_divide_are_whole_again(pdf_of: PdfOf) -> None:
    body = [
        "Nobody came to the harbour.",
        "The repre-",
        "sentation of the towns",
        "was good.",
        "Then it rained.",
    ]
    pages = [["The Treaty", *body[turn:], *body[:turn], str(n)] for n, turn in enumerate((0, 3, 4))]
    found = read_pdf("a.pdf", pdf_of(pages))
    assert "-" not in found.text
    assert found.text.count("The representation\nof the towns") == 3
    assert [found.text[page.start :].split()[0] for page in found.pages] == ["Nobody", "was", "Then"]


def test_labels_are_those_of_the_file(pdf_of: PdfOf) -> None:
    def label(writer: Any) -> None:
        writer.set_page_label(0, 1, style="/r")
        writer.set_page_label(2, 2, style="/D", start=7)

    found = read_pdf("a.pdf", pdf_of(PAGES, finish=label))
    assert [page.label for page in found.pages] == ["i", "ii", "7"]
    assert [page.name for page in found.pages] == ["page i (1)", "page ii (2)", "page 7 (3)"]


def test_a_page_without_text_keeps_its_number(pdf_of: PdfOf) -> None:
    found = read_pdf("a.pdf", pdf_of([["One."], [], ["Three."]]))
    assert found.text == "One.\n\nThree."
    assert [(page.start, page.number) for page in found.pages] == [(0, 1), (4, 2), (6, 3)]
    mostly = read_pdf("a.pdf", pdf_of([["One."], [], []]))
    assert mostly.notes == ("2 of 3 pages have no text; scanned pages need OCR first",)


def test_a_scan_is_refused(pdf_of: PdfOf) -> None:
    with pytest.raises(ValueError, match=r"a\.pdf: got a PDF without text on its 2 pages; .* need OCR first"):
        read_pdf("a.pdf", pdf_of([[], []]))


def test_a_password_for_reading_is_refused_and_one_for_changing_is_not(pdf_of: PdfOf) -> None:
    def lock(user: str) -> Callable[[Any], None]:
        return lambda writer: writer.encrypt(user, "owner", algorithm="RC4-128")

    with pytest.raises(ValueError, match=r"got an encrypted PDF that needs a password; .*qpdf --decrypt"):
        read_pdf("a.pdf", pdf_of(PAGES, finish=lock("secret")))
    assert read_pdf("a.pdf", pdf_of(PAGES, finish=lock(""))).text == read_pdf("a.pdf", pdf_of(PAGES)).text


def test_aes_without_its_package_is_told(pdf_of: PdfOf, tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    for algorithm in ("AES-128", "AES-256"):
        data = pdf_of(
            PAGES, finish=lambda writer, name=algorithm: writer.encrypt("", "owner", algorithm=name)
        )
        assert read_pdf("a.pdf", data).text == read_pdf("a.pdf", pdf_of(PAGES)).text
        (tmp_path / "a.pdf").write_bytes(data)
        without = (
            "import sys; sys.modules['cryptography'] = sys.modules['Crypto'] = None\n"
            "from spscanner_rag.files import read\nread(sys.argv[1])"
        )
        told = subprocess.run(
            [sys.executable, "-c", without, tmp_path / "a.pdf"], capture_output=True, text=True, check=False
        )
        assert told.stderr.strip().endswith(
            "a.pdf: got a PDF with AES encryption, which needs one more package; expected it after "
            "`pip install cryptography`, or decrypted, for example with `qpdf --decrypt`"
        )


def test_damaged_files_are_read_or_told_in_one_line(pdf_of: PdfOf, capfd: pytest.CaptureFixture[str]) -> None:
    whole, chance = pdf_of(PAGES), random.Random(0)
    for _ in range(40):
        data = bytearray(whole[: chance.randrange(20, len(whole))] if chance.random() < 0.5 else whole)
        for _ in range(chance.randrange(8)):
            data[chance.randrange(8, len(data))] = chance.randrange(256)
        told = None
        try:
            read_pdf("a.pdf", bytes(data))
        except ValueError as error:
            told = str(error)
        assert told is None or (told.startswith("a.pdf: got ") and len(told) < 400 and "\n" not in told)
    assert capfd.readouterr() == ("", "")  # pypdf logs what it mends
