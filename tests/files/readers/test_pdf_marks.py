"""Where words of a PDF stand on its pages, and its copy with highlights, read back with pypdf."""

import io
import re
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("pypdfium2", reason="the extra files is not installed")

import pypdf
import pypdfium2

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.pdf_marks import AUTHOR, SIGNED, Mark, marked_copy
from spscanner_rag.text.word_boxes import WORDS_KEY, boxes_of, unpacked
from tests.files.readers.test_pdf import PdfOf, form, read_here

PAGES = [
    ["Mill News", "The mill by the weir was sold twice. Its wheel was", "of oak. The miller repre-", "1"],
    ["Mill News", "sents the valley in the council.", "He has two daughters (and a dog).", "2"],
    ["Mill News", "Nobody has seen the dog.", "It is said to bark at night.", "3"],
]


def turned(page: int, letters: int) -> Callable[[Any], None]:
    """Pages that a viewer turns by degrees, and letters that are half as large and turned the other way."""

    def turn(writer: Any) -> None:
        for each in writer.pages:
            by = pypdf.Transformation().scale(0.5).translate(-150, -200).rotate(letters).translate(300, 400)
            each.add_transformation(by)
            each.rotate(page)

    return turn


@pytest.mark.parametrize("finish", [turned(0, 0), turned(90, 90), turned(90, 0), turned(0, 270)])
@pytest.mark.parametrize(
    ("sentence", "shown"),
    [
        ("The mill by the weir was sold twice.", [(1, "The mill by the weir was sold twice.")]),
        ("Its wheel was\nof oak.", [(1, "Its wheel was"), (1, "of oak.")]),
        (
            "The miller repre-\nsents the valley in the council.",
            [(1, "The miller repre"), (2, "sents the valley in the council.")],
        ),
        ("He has two daughters (and a dog).", [(2, "He has two daughters (and a dog).")]),
    ],
)
def test_the_text_in_the_boxes_is_the_sentence(
    pdf_of: PdfOf, finish: Callable[[Any], None], sentence: str, shown: list[tuple[int, str]]
) -> None:
    data = pdf_of(PAGES, finish=finish)
    document = read_here(data)
    start = document.text.index(sentence)
    boxes = document.boxes(start, start + len(sentence))
    pages = pypdfium2.PdfDocument(data)
    texts = [(box[0], pages[box[0] - 1].get_textpage().get_text_bounded(*box[1:])) for box in boxes]
    assert [(page, text.strip("\2\ufffe- \r\n")) for page, text in texts] == shown


def test_a_word_that_is_whole_again_stands_in_two_places(pdf_of: PdfOf) -> None:
    document = read_here(pdf_of([["It was a good repre-", "sentation of the", "valley."]]))
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


@pytest.mark.parametrize("text", ["", "1", "1:", "x:eJw=", "1:no base64", "2:" + b64encode(b"x").decode()])
def test_words_that_were_cut_have_no_boxes(text: str) -> None:
    known = unpacked(text)
    assert known is None or not len(known[1])


def marks_of(document: TextFile, *sentences: str) -> list[Mark]:
    starts = map(document.text.index, sentences)
    return [
        Mark(document.boxes(start, start + len(sentence)), f"Who?\n{sentence[:4]} ☂", 0.5)
        for start, sentence in zip(starts, sentences, strict=True)
    ]


def notes_of(copy: bytes) -> list[tuple[int, str, str, int]]:
    """Page, kind, text and number of quads of each annotation."""
    return [
        (number, note["/Subtype"], note["/Contents"], len(note.get("/QuadPoints", ())) // 8)
        for number, page in enumerate(pypdf.PdfReader(io.BytesIO(copy)).pages, start=1)
        for note in (each.get_object() for each in page.get("/Annots", ()))
        if note["/T"] == AUTHOR
    ]


def test_a_copy_has_highlights_where_the_sentences_stand(pdf_of: PdfOf) -> None:
    data = pdf_of(PAGES)
    document = read_here(data)
    own = marks_of(document, "Its wheel was\nof oak.", "The miller repre-\nsents the", "Nobody has seen")
    copy, told = marked_copy("mill.pdf", data, own)
    assert told == ()
    assert notes_of(copy) == [
        (1, "/Highlight", "Who?\nIts  ☂", 2),
        (1, "/Highlight", "Who?\nThe  ☂", 1),
        (2, "/Highlight", "Who?\nThe  ☂", 1),
        (3, "/Highlight", "Who?\nNobo ☂", 1),
    ]
    assert read_here(copy).text == document.text
    quads = pypdf.PdfReader(io.BytesIO(copy)).pages[2]["/Annots"][0].get_object()["/QuadPoints"]
    _, x0, y0, x1, y1 = own[2].boxes[0]
    assert [float(value) for value in quads] == pytest.approx([x0, y1, x1, y1, x0, y0, x1, y0])


def test_a_copy_of_a_signed_pdf_says_so(pdf_of: PdfOf) -> None:
    signature = {"FT": "/Sig", "T": "s", "V": {"Type": "/Sig", "Filter": "/Adobe.PPKLite", "Contents": "x"}}
    data = pdf_of(PAGES, finish=form(signature))
    copy, told = marked_copy("mill.pdf", data, marks_of(read_here(data), "Nobody has seen"))
    assert told == (SIGNED,)
    assert [(page, kind) for page, kind, *_ in notes_of(copy)] == [(1, "/Text"), (3, "/Highlight")]


@pytest.mark.parametrize(
    ("user", "allowed", "expected"),
    [("secret", -1, "allows no notes"), ("", 0, "allows no notes"), ("", -1, None)],
)
def test_a_locked_pdf_may_allow_notes(pdf_of: PdfOf, user: str, allowed: int, expected: str | None) -> None:
    def lock(writer: Any) -> None:
        flags = pypdf.constants.UserAccessPermissions(allowed & 0xFFFFFFFF)
        writer.encrypt(user, "owner", permissions_flag=flags, algorithm="RC4-128")

    data = pdf_of(PAGES, finish=lock)
    if expected is None:
        copy, _ = marked_copy("mill.pdf", data, marks_of(read_here(data), "Nobody has seen"))
        assert len(notes_of(copy)) == 1
    else:
        with pytest.raises(ValueError, match=rf"mill\.pdf: got an encrypted PDF that {expected}"):
            marked_copy("mill.pdf", data, [])


def test_what_is_no_pdf_is_told() -> None:
    with pytest.raises(
        ValueError, match=r"mill\.pdf: got a PDF that cannot be copied \(.*\); write --out page"
    ):
        marked_copy("mill.pdf", b"%PDF-1.7 nothing", [])
