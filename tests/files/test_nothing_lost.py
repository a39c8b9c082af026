"""Nothing on the page is lost: every visible word is in what a unit reads.

The words of a file, by an independent reader, are held against those of the units:
those that a unit scores, and the headings and headers that it reads before them.
"""

import re
from collections import Counter
from html import escape

import lxml.html
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.reading import read_bytes
from spscanner_rag.text.block_segmentation import segment_blocks
from spscanner_rag.text.segmentation import SentenceSegmenter
from tests.word import docx, paragraph, row, table

SEGMENTER = SentenceSegmenter("en")
WORD = re.compile(r"\w+")


def words_read(document: TextFile) -> Counter[str]:
    units = segment_blocks(document.text, document.blocks, SEGMENTER.segment)
    return Counter(WORD.findall(" ".join(unit.model_text for unit in units)))


def results(document: TextFile) -> list[str]:
    """What is shown of each unit, in one line."""
    units = segment_blocks(document.text, document.blocks, SEGMENTER.segment)
    shown = [document.shown(unit.start, unit.end) for unit in units]
    return [" ".join(text.split()) for text in shown]


def assert_all_read(name: str, data: bytes, visible: str) -> None:
    document = read_bytes(name, data)
    lost = Counter(WORD.findall(visible)) - words_read(document)
    assert not lost or document.notes, lost


def words_of_page(page: str) -> str:
    """The words of a page by lxml alone."""
    return " ".join(lxml.html.fromstring(page).itertext())


NAMES = st.sampled_from("Anne rent 4,194 mill. Term May 12 m. No St. (a) he".split())
SENTENCE = st.lists(NAMES, min_size=1, max_size=9).map(" ".join)
BLANKS = st.sampled_from(["\n", "\n\n", " ", "\n\f", "\f", "\r\n", "\n- ", "\n● "])


@given(st.lists(st.tuples(SENTENCE, BLANKS), min_size=1, max_size=8))
def test_every_word_of_a_text_is_read(parts: list[tuple[str, str]]) -> None:
    text = "".join(sentence + blank for sentence, blank in parts)
    assert_all_read("a.txt", text.encode(), text)


LINE = st.sampled_from(
    ["{}", "# {}", "## {}", "- {}", "> {}", "| {} | x |", "<b>{}</b>"]
)
MARKDOWN = st.lists(st.tuples(LINE, SENTENCE), min_size=1, max_size=8)


@given(MARKDOWN, st.sampled_from(["\n", "\n\n"]))
def test_every_word_of_markdown_is_read(lines: list[tuple[str, str]], gap: str) -> None:
    text = gap.join(line.format(words) for line, words in lines)
    parser = MarkdownIt("commonmark").enable("table")
    assert_all_read("a.md", text.encode(), words_of_page(parser.render(text)))


TAGS = st.sampled_from(["p", "h2", "li", "td", "th", "del", "b", "blockquote", "div"])
ELEMENTS = st.lists(st.tuples(TAGS, SENTENCE), min_size=1, max_size=8)


@settings(max_examples=20)
@given(ELEMENTS)
def test_every_word_of_a_page_is_read(elements: list[tuple[str, str]]) -> None:
    parts = []
    for tag, words in elements:
        element = f"<{tag}>{escape(words)}</{tag}>"
        if tag in ("td", "th"):
            element = f"<table><tr>{element}<td>x</td></tr></table>"
        parts.append(element)
    # Without a space, words of two inline elements would be one word on the page.
    page = f"<html><body>{' '.join(parts)}</body></html>"
    assert_all_read("a.html", page.encode(), words_of_page(page))


@given(st.lists(st.tuples(st.booleans(), SENTENCE), min_size=1, max_size=6))
def test_every_word_of_a_word_document_is_read(parts: list[tuple[bool, str]]) -> None:
    body = ""
    for is_row, words in parts:
        body += table(row(words, "x"), row("y", words)) if is_row else paragraph(words)
    visible = " ".join(re.findall(r"<w:t[^>]*>([^<]*)</w:t>", body))
    assert_all_read("a.docx", docx(body), visible)


DATA = "data:image/png;base64," + "aB3+" * 60
CASES = {
    # Markdown: what is shown and read
    "span.md": ('The <span class="x">tenant</span> pays.', "The tenant pays."),
    "break.md": ("It rained.<br>Nobody came.", "Nobody came."),
    "entity.md": ("He pays &pound;40 &amp; more.", "He pays £40 & more."),
    "escape.md": ("See rent\\_due\\. It rained.", "See rent_due."),
    "picture.md": (f"See ![plan]({DATA}) now.", "See plan now."),
    "link.md": (f"See [plan]({DATA}) now.", "See [plan] now."),
    "bare.md": (f"It rained. {DATA} Nobody came.", "Nobody came."),
    "comment.md": ("<!-- draft\n-->\nIt rained.", "It rained."),
    "struck.md": ("Rent: <s>forty</s> fifty.", "Rent: ~~forty~~ fifty."),
    "style.md": ("<style>a {b: c}</style>\n\nIt rained.", "It rained."),
    "code.md": ("Use `<b>` here.", "Use `<b>` here."),
    "generic.md": ("A List<Item> is full.", "A List<Item> is full."),
    "head.md": ("| Anne | signed |\n|---|---|\n| Bob | left |", "| Bob | left |"),
    "first.md": ("| Anne | left |\n|---|---|\n| B | l |", "| Anne | left |"),
    "title.md": ("# He pays forty marks.\n\nIt rained.", "# He pays forty marks."),
    "two.md": ("## The mill burned. He left it\n\nOh.", "He left it"),
    "last.md": ("It rained.\n\n# Anne signed", "# Anne signed"),
    # HTML
    "del.html": ("<p>Rent <del>forty</del> <ins>fifty</ins>.", "Rent ~~forty~~ fifty."),
    "strike.html": ("<p><strike>He may sublet.</strike>", "~~He may sublet.~~"),
    "heading.html": ("<h3>He pays forty marks.</h3><p>Oh.", "He pays forty marks."),
    "bold.html": (
        "<table><tr><td><b>Anne</b><td><b>may</b><tr><td>Bob<td>left</table>",
        "Anne | may",
    ),
    "field.html": ("<p>Name: <textarea>Anne Reed</textarea>", "Name: Anne Reed"),
    # Text: sentences
    "pages.txt": ("He knew it was\n\fsigned. It rained.", "He knew it was signed."),
    "paragraphs.txt": ("It burned.\n\fIt rained.", "It rained."),
    "divided.txt": ("The arch-\n\fbishop came. It rained.", "The arch- bishop came."),
    "metres.txt": ("It is 12 m. He left.", "He left."),
    "litres.txt": ("It holds 5 l. He drank.", "It holds 5 l."),
    "hours.txt": ("It took 3 h. He left.", "He left."),
    "grams.txt": ("It weighs 5 g. He left.", "He left."),
    "limited.txt": ("It is Hale Ltd. Nobody left.", "Nobody left."),
    "state.txt": ("He left the U.S. However, it rained.", "However, it rained."),
    "initial.txt": ("On 5 J. Reed left. It rained.", "On 5 J. Reed left."),
    "bullet.txt": ("● Keep it dry. Oil it.\n● Eat.", "Oil it."),
    "square.txt": ("■ One.\n□ Two here", "□ Two here"),
    "arrow.txt": ("➢ Keep it. Oil it.\n➢ Eat.", "➢ Keep it."),
    "contract.txt": ("8. Logo Rights. He pays. Oh.", "8. Logo Rights. He pays."),
    "clause.txt": ("(b) Fees. He pays it. Oh.", "(b) Fees. He pays it."),
    "section.txt": ("Section 4.2 Term. It ends. Oh.", "Section 4.2 Term. It ends."),
    "letters.txt": ("If (a) he wins, or\n(b) she. Oh.", "If (a) he wins, or (b) she."),
    "items.txt": ("He shall\n(a) pay,\n(b) leave.", "(b) leave."),
    "capitals.txt": ("3. NO WAIVER. He pays. Oh.", "3. NO WAIVER. He pays."),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_result_of_a_small_file(name: str) -> None:
    content, expected = CASES[name]
    assert expected in results(read_bytes(name, content.encode()))
