import pytest
from hypothesis import given, settings

from tests.small_files import assert_all_read, epub, texts_of_words

pytest.importorskip("lxml", reason="the extra files is not installed")

from spscanner_rag.files.readers.epub import read_epub


def test_chapters_with_their_titles() -> None:
    book = epub(
        "<h1>The storm</h1><p>It rained.</p>",
        "<p>Calm&nbsp;sea. <script src='x'/>The end.</p>",
        titles=["Storm"],
    )
    document = read_epub(book)
    assert document.text == "The storm\n\nIt rained.\n\nCalm sea. The end."
    assert document.place_name(document.text.index("It")) == "chapter 1, Storm"
    assert document.place_name(document.text.index("Calm")) == "chapter 2"
    assert document.headings(document.text.index("It")) == ("The storm",)
    assert document.metadata == {"title": "The light"}


@given(texts_of_words(min_size=1, max_size=5))
@settings(max_examples=10, deadline=None)
def test_every_word_is_in_a_unit(texts: list[str]) -> None:
    assert_all_read(read_epub(epub(*[f"<p>{text}</p>" for text in texts])), texts)


def test_a_chapter_is_read_once_however_often_it_is_named() -> None:
    book = epub("<p>It rained.</p>", "<p>It ended.</p>", spine=[1, 2] * 5_000)
    assert read_epub(book).text == "It rained.\n\nIt ended."


def test_what_is_not_read_has_a_note() -> None:
    encrypted = '<encryption><CipherReference URI="book/c1.xhtml"/></encryption>'
    parts = {"META-INF/encryption.xml": encrypted}
    book = epub(
        "<p>Secret.</p>", "<p>Read.</p>", "<p>Extra.</p>", spine=[1, 2], parts=parts
    )
    document = read_epub(book)
    assert document.text == "Read."
    assert document.notes == (
        "chapter 1 is left out: it is encrypted",
        "book/c3.xhtml is left out: it is no chapter of the book",
    )


@pytest.mark.parametrize(
    "parts",
    [
        {"META-INF/container.xml": "<container/>"},
        {"book/book.opf": "<package/>"},
        {"book/book.opf": "<package"},
        {"book/c1.xhtml": f"<p>{' ' * 2**25}</p>"},
    ],
)
def test_a_broken_book_is_refused(parts: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"EPUB|split the book"):
        read_epub(epub("<p>It rained.</p>", parts=parts))


def test_the_old_table_of_contents_names_chapters() -> None:
    navigation = (
        "<ncx><navPoint><navLabel><text>The  storm</text></navLabel>"
        '<content src="c1.xhtml#a"/></navPoint><navPoint><content src="c2.xhtml"/>'
        "</navPoint></ncx>"
    )
    package = (
        "<package><metadata><title>A</title><title>B</title><creator/></metadata>"
        '<manifest><item id="a" href="c1.xhtml" media-type="application/xhtml+xml"/>'
        '<item id="b" href="c2.xhtml" media-type="application/xhtml+xml"/>'
        '<item id="n" href="toc.ncx" media-type="application/x-dtbncx+xml"/>'
        '<item id="p" href="a.png" media-type="image/png"/></manifest>'
        '<spine><itemref idref="a"/><itemref idref="p"/><itemref idref="none"/>'
        '<itemref idref="b"/></spine></package>'
    )
    parts = {"book/book.opf": package, "book/toc.ncx": navigation}
    document = read_epub(epub("<p>It rained.</p>", "<p>It ended.</p>", parts=parts))
    assert document.place_name(0) == "chapter 1, The storm"
    assert document.place_name(len(document.text) - 1) == "chapter 2"
    assert document.metadata == {"title": "A"}


def test_a_chapter_that_cannot_be_read_has_a_note() -> None:
    listed = epub("<p>a</p>", "<p>b</p>", "<p>It rained.</p>")
    assert read_epub(listed).text == "a\n\nb\n\nIt rained."
    parts = {"book/c1.xhtml": "\0", "book/c2.xhtml": "<p>It <b>ended.</p>"}
    document = read_epub(epub("a", "b", "<p>It rained.</p>", parts=parts))
    assert document.text == "It ended.\n\nIt rained."
    (note,) = document.notes
    assert note.startswith("chapter 1 is left out: got ")


def test_a_chapter_that_is_not_in_the_file_has_a_note() -> None:
    package = (
        '<package><manifest><item id="a" href="c1.xhtml"'
        ' media-type="application/xhtml+xml"/><item id="b" href="gone.xhtml"'
        ' media-type="application/xhtml+xml"/></manifest>'
        '<spine><itemref idref="b"/><itemref idref="a"/></spine></package>'
    )
    document = read_epub(epub("<p>It rained.</p>", parts={"book/book.opf": package}))
    assert document.text == "It rained."
    assert document.notes == ("chapter 1 is missing in the file",)
