"""Passages and their places in a file."""

import pickle

from spscanner_rag.files.documents import PageStart, TextFile
from spscanner_rag.text.blocks import Block
from tests.results.small_result import TEXT, make


def test_passages_of_a_file_know_their_place() -> None:
    blocks = (Block(0, 15, "heading", level=1, title="The\x1b treaty"),)
    guide = make(document=TextFile("guide.md", TEXT, blocks))
    assert [one.cite() for one in guide.select(top_k=2)] == [
        "guide.md, The\\x1b treaty"
    ] * 2
    pages = (PageStart(0, 1, "iv"), PageStart(36, 2, "1"))
    paged = make(document=TextFile("a.pdf", TEXT, blocks, pages))
    first, last = pickle.loads(pickle.dumps(paged)).select(top_k=2)
    assert (first.source, first.page, first.headings) == (
        "a.pdf",
        "iv",
        ("The\x1b treaty",),
    )
    assert last.cite() == "a.pdf, page 1"
    assert paged.context(cite=True) == f"{TEXT} [1]\n\n[1] a.pdf, page iv"
    assert (
        paged.context(2, cite=True)
        == "Anne signed it. [1]\nNobody answered! [2]\n\n[1] a.pdf, page iv\n[2] a.pdf,"
        " page 1"
    )
    assert (
        make().context(1, cite=True) == "Anne signed it. [1]\n\n[1] characters 0 to 15"
    )
    assert make().context(threshold=1.0, cite=True) == ""
