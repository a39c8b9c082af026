"""The page of a scan, where text stays text and every link leads somewhere."""

import io
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.apps.pages.html_page import Breaks, readable
from spscanner_rag.apps.pages.report import LEVELS, level_of, render_report
from spscanner_rag.apps.pages.scanned_document import (
    NOT_CLEAR,
    ScannedDocument,
    select_together,
)
from spscanner_rag.apps.pages.terminal import render_documents
from spscanner_rag.files.documents import TextFile
from spscanner_rag.results import ScanResult, Selection
from spscanner_rag.text.escaping import visible
from tests.apps.pages.checked_page import WORDS, CheckedPage, check_page, text_of


def scan(
    text: str, *, path: str = "a.txt", top_k: int = 5, order: str = "score"
) -> ScannedDocument:
    spans = [
        match.span() for match in re.finditer(r"[^\s.]+(?:\s+[^\s.]+){0,9}\.?", text)
    ]
    logits = np.random.default_rng(0).normal(-3, 3, size=len(spans)).astype(np.float32)
    starts, ends = [start for start, _ in spans], [end for _, end in spans]
    result = ScanResult("Who?", text, starts, ends, logits)
    selection = Selection(top_k=top_k, order=order)  # type: ignore[arg-type]
    return select_together([TextFile(path, text)], [result], selection)[0]


def checked(*scanned: ScannedDocument, model: str = "m") -> CheckedPage:
    return check_page(render_report("Who?", model, scanned))


def shown_in(page: CheckedPage) -> list[str]:
    """The text of each document, without ranks; a block begins a new line."""
    documents = []
    for document in page.all("div", "text"):
        for back in list(document.iter("a")):
            back.text = ""
        documents.append("\n".join(map(text_of, document)))
    return documents


@given(
    st.lists(WORDS, max_size=40).map(" ".join) | st.text(st.characters(), max_size=60)
)
def test_the_shown_text_is_the_document(text: str) -> None:
    assert shown_in(checked(scan(text))) == [visible(text)]


def test_blocks_do_not_change_the_text() -> None:
    prose = ("A sentence of some words stands here.\n" * 3 + "\n") * 400
    one_line = "A sentence of some words stands here. " * 4000
    page = checked(
        scan(prose),
        scan(one_line),
        scan(prose.replace("\n", "\r\n")),
        scan("\n\nOne. "),
    )
    shown = shown_in(page)
    assert len([each for each in page.all("div") if "data-at" in each.attrib]) > 14
    assert shown[0] == shown[2] == prose
    assert (
        shown[1].count("\n") == 2
    )  # the only line breaks that the document does not have
    assert shown[1].replace("\n", "") == one_line
    assert shown[3] == "\n\nOne. "


def test_a_wrapped_paragraph_is_shown_in_the_width_of_the_window() -> None:
    wrapped = (
        "A line of a paragraph that was wrapped at some sixty characters\n" * 9
    ).replace("that", "That")
    page = checked(scan(wrapped + "\nA new paragraph."))
    assert shown_in(page) == [wrapped + "\nA new paragraph."]
    assert [text_of(each) for each in page.root.iter("i")] == ["\n"] * 8


def test_breaks_that_wrap_a_paragraph_are_told_from_others() -> None:
    line = "words " * 11 + "end"
    text = (
        f"Title\n\n{line}\n{line}\nshort last.\n\n{line}\n{line}\n "
        f" indented\n{line}\n12. item\n{line}\n- item"
    )
    breaks = Breaks(text)
    soft = [
        place
        for place, character in enumerate(text)
        if character == "\n" and breaks.is_soft(place)
    ]
    first = text.index(line)
    second = text.index(line, text.index("short"))
    length = len(line)
    assert soft == [first + length, first + 2 * length + 1, second + length]
    assert not any(Breaks("a\nb\nc\nd\ne\nf").is_soft(place) for place in (1, 3, 5))


@pytest.mark.parametrize("order", ["score", "document"])
def test_the_best_are_listed_in_the_order_asked_for_with_their_rank(order: str) -> None:
    scanned = scan("One one. Two two.\nThree three. Four four.", top_k=3, order=order)
    page = checked(scanned)
    items = list(page.root.iter("li"))
    assert [each.attrib["id"] for each in items] == [
        f"l1-{scanned.number(pick)}" for pick in scanned.picks
    ]
    for item, pick in zip(items, scanned.picks, strict=True):
        rank = 1 + sum(other.score > pick.score for other in scanned.picks)
        line = 1 + (pick.start > 17)
        assert item[0].attrib["href"] == "#" + item.attrib["id"].replace("l", "d")
        parts = [str(rank), f"{pick.score:.3f}", f"line {line}", pick.text]
        assert [text_of(part) for part in item[0]] == parts
        assert item.get("class") == ("best" if rank == 1 else None)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("| vessel | fee |\n|---|:-:|\n| brig |  |", "vessel · fee\nbrig"),
        ("| a | b |\nand more", "| a | b |\nand more"),
        ("|---|---|", "|---|---|"),
        ("  indented", "  indented"),
        ("", ""),
    ],
)
def test_rows_of_tables_are_quoted_without_their_lines(text: str, shown: str) -> None:
    assert readable(text) == shown
    page = checked(scan("| keeper | signed the treaty |"))
    assert page.text("span", "quote") == "keeper · signed the treaty"
    assert (
        page.text("mark") == "| keeper | signed the treaty |"
    )  # the text itself is unchanged


def test_a_pick_shows_its_rank_among_those_of_all_documents_and_whose_it_is() -> None:
    files = [TextFile("a.txt", "One one. Two two."), TextFile('"b".md', "Three. Four.")]
    results = [scan(file.text).result for file in files]
    selected = select_together(files, results, Selection(top_k=3))
    page = checked(*selected, model="default")
    assert "The numbers are ranks over all documents." in text_of(next(page.all("nav")))
    assert page.text("p", "facts").endswith(" · model: the bundled one")
    facts = [each.attrib["data-facts"] for each in page.all("mark")]
    wanted = [
        f"{of_file.ranks[pick.start]} of 3 · score {pick.score:.3f} · {file.path}, line"
        " 1 · "
        for file, of_file in zip(files, selected, strict=True)
        for pick in sorted(of_file.picks, key=lambda pick: pick.start)
    ]
    assert [fact.rpartition("· ")[0] + "· " for fact in facts] == wanted


def test_only_picks_are_highlighted_the_stronger_the_better() -> None:
    scanned = scan(
        " ".join(f"Sentence number {number}." for number in range(200)), top_k=20
    )
    page = checked(scanned)
    marks = {each.attrib["id"]: each for each in page.all("mark")}
    best_first = [marks.pop(f"d1-{scanned.number(pick)}") for pick in scanned.picks]
    assert not marks
    levels = [int(mark.attrib["class"].removeprefix("s")) for mark in best_first]
    assert levels == sorted(levels, reverse=True)
    assert levels[0] == LEVELS > levels[-1]
    assert [mark.get("data-rank") for mark in best_first] == ["1", *[None] * 19]


@pytest.mark.parametrize(("score", "level"), [(1, 8), (0.25, 4), (0.01, 1), (0, 1)])
def test_strength_is_absolute(score: float, level: int) -> None:
    assert level_of(score) == level


@pytest.mark.parametrize(
    ("says", "unclear"),
    [
        ((0.1,), True),
        ((0.9,), False),
        ((None,), False),
        ((0.1, 0.2), True),
        ((0.1, 0.9), False),
    ],
)
def test_it_is_said_where_nothing_clearly_answers(
    says: tuple[float | None, ...], unclear: bool
) -> None:
    documents = [
        scan("One. Two. Three.", path=f"{number}.txt") for number in range(len(says))
    ]
    scanned = [
        replace(document, result=replace(document.result, answerable=probability))
        for document, probability in zip(documents, says, strict=True)
    ]
    assert (NOT_CLEAR in text_of(checked(*scanned).root)) == unclear
    assert render_documents(scanned, io.StringIO()).startswith(NOT_CLEAR) == unclear


def test_the_strip_shows_where_the_picks_stand() -> None:
    scanned = scan(
        "\n".join(f"Sentence number {number} of many." for number in range(500)),
        top_k=6,
    )
    strip = next(checked(scanned).all("svg"))
    ticks = {tick.attrib["href"]: tick for tick in strip.iter("a")}
    for passage in scanned.picks:
        x = float(ticks[f"#d1-{scanned.number(passage)}"][1].attrib["x"])
        assert x == pytest.approx(
            1000 * passage.start / len(scanned.result.text), abs=6
        )
    ranks = [text_of(tick).partition(":")[0] for tick in ticks.values()]
    assert ranks == ["6", "5", "4", "3", "2", "1"]  # the best is drawn on top
    assert next(strip.iter("path")).attrib["d"].startswith("M")


def test_the_best_of_several_documents_come_first() -> None:
    one, other = (
        scan("One. Two. Three.", path="one.txt"),
        scan("Four. Five. Six.", path="two.txt"),
    )
    files = [one.document, other.document]
    scanned = select_together(
        files, [one.result, other.result], Selection(top_k=5, order="score")
    )
    (first,) = [
        each for each in checked(*scanned).all("ol") if each.get("class") == "first"
    ]
    assert [
        text_of(each) for each in first.iter("span") if each.get("class") == "rank"
    ] == ["1", "2", "3"]
    alone = ScannedDocument(other.document, other.result, (), {})
    assert not [
        each for each in checked(one, alone).all("ol") if each.get("class") == "first"
    ]


def test_a_document_of_which_nothing_was_selected() -> None:
    nothing = scan("Nothing here. At all.")
    page = checked(
        scan("One. Two.", top_k=1),
        ScannedDocument(nothing.document, nothing.result, (), {}),
    )
    assert "No sentence was selected in 1" in [
        text_of(each) for each in page.all("summary")
    ]


def test_the_title_is_one_short_line() -> None:
    page = render_report("</title><script>\n" * 500, "m", [scan("One.")])
    assert len(check_page(page).title) <= 200


@pytest.mark.slow
def test_the_page_is_little_larger_than_the_document() -> None:
    text = "A sentence of some words stands here, and it is as long as most.\n" * 45_000
    page = render_report("Who?", "m", [scan(text, top_k=50)])
    assert len(page) < 1.5 * len(text)
    assert page.count("<span") < 60_000
