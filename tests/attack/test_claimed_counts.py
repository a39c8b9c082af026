"""Small PDFs that claim to be large cost little, in this process as in the other."""

import time

import pytest

pytest.importorskip("pypdfium2", reason="the extra files is not installed")

from spscanner_rag.files.reading import read_bytes
from tests.attack.conftest import Attempt, assert_one_line
from tests.attack.hostile_files import pdf_of_equal_pages

pytestmark = pytest.mark.timeout(200)

SECONDS = 60.0
PDF = pdf_of_equal_pages(2, 3)
NESTED = b"[" * 5_000 + b"]" * 5_000
PAGE = b"5 0 R"

CLAIMS = {
    "a million pages": (b"/Count 2", b"/Count 999999"),
    "two thousand million pages": (b"/Count 2", b"/Count 2147483647"),
    "more pages than 32 bits": (b"/Count 2", b"/Count 99999999999"),
    "fewer than no pages": (b"/Count 2", b"/Count -1"),
    "no number of pages": (b"/Count 2", b"/Count null"),
    "one page many times": (b"/Kids[5 0 R", b"/Kids[" + PAGE + b" 5 0 R" * 5_000),
    "pages that are absent": (b"/Kids[5 0 R", b"/Kids[99999 0 R"),
    "pages within pages": (b"/Kids[5 0 R", b"/Kids[2 0 R"),
    "deep kids": (b"/Kids[5 0 R", b"/Kids[" + NESTED),
    "a size of objects": (b"/Size 7", b"/Size 99999999"),
    "a table of entries": (b"xref\n0 7", b"xref\n0 9999999"),
    "a stream of gigabytes": (b"<</Length ", b"<</Length 9"),
    "a page of kilometres": (b"[0 0 612 792]", b"[0 0 1e9 1e9]"),
    "a page of no size": (b"[0 0 612 792]", b"[0 0 0 0]"),
    "a font of itself": (b"/F1 4 0 R", b"/F1 5 0 R"),
}


@pytest.mark.parametrize(
    "claim",
    [
        name if number < 3 else pytest.param(name, marks=pytest.mark.slow)
        for number, name in enumerate(CLAIMS)
    ],
)
def test_a_claim_costs_little(claim: str, attempt: Attempt) -> None:
    honest, claimed = CLAIMS[claim]
    data = PDF.replace(honest, claimed)
    assert data != PDF
    began = time.process_time()
    with attempt("files: pdf with claims"):
        try:
            document = read_bytes("a.pdf", data, seconds=SECONDS)
        except ValueError as error:
            assert_one_line(str(error))
        else:
            assert len(document.pages) <= 6_000
            assert len(document.text) < 200_000
        assert time.process_time() - began < 10
