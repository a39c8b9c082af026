import pytest

from spscanner_rag.apps.verifying.citation_marks import MarkReader


@pytest.mark.parametrize(
    ("answer", "documents"),
    [
        ("It sank [2].", [1]),
        ("It sank [1, 2].", [0, 1]),
        ("It sank [1-2].", [0, 1]),
        ("It sank [^2].", [1]),
        ("It sank 【2†source】.", [1]),
        ("It sank (report.pdf, page 4).", [0]),
        ("It sank [report].", [0]),
        ("It sank [here](https://example.org/docs/notes.md).", [1]),
        ("It sank [3].", [None]),
        ("It sank (in May).", []),
        ("It sank (reporters say).", []),
        ("It sank [1].\n\n[1] Notes.md, p. 2", [1]),
        ("It sank [2].\n\n[1] notes.md", [None]),
    ],
)
def test_what_a_mark_cites(answer: str, documents: list[int | None]) -> None:
    marks = MarkReader(["a/report.pdf", "notes.md"]).marks(answer)
    cited = [citation.document for mark in marks for citation in mark.citations]
    assert cited == documents


def test_a_page_is_read() -> None:
    (mark,) = MarkReader(["report.pdf"]).marks("It sank (report.pdf, p. iv).")
    assert mark.citations[0].page == "iv"


def test_a_range_of_numbers_is_bounded() -> None:
    (mark,) = MarkReader([]).marks("It sank [1-999].")
    assert len(mark.citations) == 20
