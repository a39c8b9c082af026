"""Copies of a PDF with highlights."""

import base64
import io
from typing import Any

import pytest

pytest.importorskip("pypdfium2", reason="the extra files is not installed")

import pypdf

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.pdf_copy import (
    AUTHOR,
    SIGNED,
    Mark,
    _copied,
    marked_copy,
)
from tests.files.readers.test_pdf import PdfOf, form, read_here
from tests.files.readers.test_pdf_pictures import PAGES


def marks_of(document: TextFile, *sentences: str) -> list[Mark]:
    starts = map(document.text.index, sentences)
    return [
        Mark(
            document.boxes(start, start + len(sentence)), f"Who?\n{sentence[:4]} ☂", 0.5
        )
        for start, sentence in zip(starts, sentences, strict=True)
    ]


def notes_of(copy: bytes) -> list[tuple[int, str, str, int]]:
    """Page, kind, text and number of quads of each annotation."""
    return [
        (
            number,
            note["/Subtype"],
            note["/Contents"],
            len(note.get("/QuadPoints", ())) // 8,
        )
        for number, page in enumerate(pypdf.PdfReader(io.BytesIO(copy)).pages, start=1)
        for note in (each.get_object() for each in page.get("/Annots", ()))
        if note["/T"] == AUTHOR
    ]


def test_a_copy_has_highlights_where_the_sentences_stand(pdf_of: PdfOf) -> None:
    data = pdf_of(PAGES)
    document = read_here(data)
    own = marks_of(
        document,
        "Its wheel was\nof oak.",
        "The miller repre-\nsents the",
        "Nobody has seen",
    )
    copy, told = marked_copy("mill.pdf", data, own)
    assert told == ()
    assert notes_of(copy) == [
        (1, "/Highlight", "Who?\nIts  ☂", 2),
        (1, "/Highlight", "Who?\nThe  ☂", 1),
        (2, "/Highlight", "Who?\nThe  ☂", 1),
        (3, "/Highlight", "Who?\nNobo ☂", 1),
    ]
    assert read_here(copy).text == document.text
    quads = (
        pypdf.PdfReader(io.BytesIO(copy))
        .pages[2]["/Annots"][0]
        .get_object()["/QuadPoints"]
    )
    _, x0, y0, x1, y1 = own[2].boxes[0]
    assert [float(value) for value in quads] == pytest.approx(
        [x0, y1, x1, y1, x0, y0, x1, y0]
    )


def test_a_copy_of_a_signed_pdf_says_so(pdf_of: PdfOf) -> None:
    signature = {
        "FT": "/Sig",
        "T": "s",
        "V": {"Type": "/Sig", "Filter": "/Adobe.PPKLite", "Contents": "x"},
    }
    data = pdf_of(PAGES, finish=form(signature))
    copy, told = marked_copy(
        "mill.pdf", data, marks_of(read_here(data), "Nobody has seen")
    )
    assert told == (SIGNED,)
    assert [(page, kind) for page, kind, *_ in notes_of(copy)] == [
        (1, "/Text"),
        (3, "/Highlight"),
    ]


@pytest.mark.parametrize(
    ("user", "allowed", "expected"),
    [("secret", -1, "allows no notes"), ("", 0, "allows no notes"), ("", -1, None)],
)
def test_a_locked_pdf_may_allow_notes(
    pdf_of: PdfOf, user: str, allowed: int, expected: str | None
) -> None:
    def lock(writer: Any) -> None:
        flags = pypdf.constants.UserAccessPermissions(allowed & 0xFFFFFFFF)
        writer.encrypt(user, "owner", permissions_flag=flags, algorithm="RC4-128")

    data = pdf_of(PAGES, finish=lock)
    if expected is None:
        copy, _ = marked_copy(
            "mill.pdf", data, marks_of(read_here(data), "Nobody has seen")
        )
        assert len(notes_of(copy)) == 1
    else:
        with pytest.raises(
            ValueError, match=rf"mill\.pdf: got an encrypted PDF that {expected}"
        ):
            marked_copy("mill.pdf", data, [])


def test_what_is_no_pdf_is_told() -> None:
    with pytest.raises(
        ValueError,
        match=r"mill\.pdf: got a PDF that cannot be copied \(.*\); write --out page",
    ):
        marked_copy("mill.pdf", b"%PDF-1.7 nothing", [])


def test_the_process_apart_answers_with_one_record(pdf_of: PdfOf) -> None:
    """What it does, in this process: the others show that it is asked."""
    signature = {
        "FT": "/Sig",
        "T": "s",
        "V": {"Type": "/Sig", "Filter": "/Adobe.PPKLite", "Contents": "x"},
    }
    data = pdf_of(PAGES, finish=form(signature))
    (mark,) = marks_of(read_here(data), "The miller repre-\nsents the")
    (record,) = _copied(data, mark)
    assert record["signed"]
    copy = base64.b64decode(record["copy"])
    assert [page for page, *_ in notes_of(copy)] == [1, 1, 2]

    def lock(writer: Any) -> None:
        flags = pypdf.constants.UserAccessPermissions(0)
        writer.encrypt("", "owner", permissions_flag=flags, algorithm="RC4-128")

    assert list(_copied(pdf_of(PAGES, finish=lock))) == [{"locked": True}]
    (broken,) = _copied(b"%PDF-1.7 nothing")
    assert broken.keys() == {"broken"}
