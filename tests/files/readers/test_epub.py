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
