"""The comparison page in a real browser."""

from pathlib import Path
from typing import Any

import pytest

from spscanner_rag.apps.compare import compare
from spscanner_rag.system.whole_files import write_whole
from tests.apps.compare.fakes import prefers
from tests.fakes import words
from tests.readable import faint_words


@pytest.fixture
def page_file(tmp_path: Path, hostile_markup: str) -> Path:
    lines = [f"Line {number} is like all of the others." for number in range(600)]
    lines[300] = f"Line 300 {hostile_markup}"
    text = "\n\n".join(lines)
    scorers = {
        "scanner": prefers(["Line 300 ", "Line 20 ", "Line 500 "]),
        "dense (chunk)": prefers(["Line 500 "], "chunk"),
        hostile_markup: prefers(["Line 20 ", "Line 400 "]),
    }
    evidence = [(text.index("Line 400 "), text.index("Line 400 ") + 8)]
    options = {"evidence": evidence, "count_tokens": words, "path": hostile_markup}
    comparison = compare(hostile_markup, text, scorers, top_k=[3, 1, 2], **options)  # type: ignore[arg-type]
    write_whole(tmp_path / "compare.html", comparison.page)
    write_whole(tmp_path / "notebook.html", f"<h1>above</h1>{comparison._repr_html_()}")
    return tmp_path / "compare.html"


def gone_to(opened: Any) -> str:
    """The pick that the page jumped to.

    It must be in view and not under the bar at the top.
    """
    (name,) = opened.page.evaluate(
        "[...document.querySelectorAll('li:target')].map((each) => each.id)"
    )
    bar = "document.querySelector('.heads').getBoundingClientRect().bottom"
    opened.until(lambda: opened.page.evaluate(bar) <= opened.top_of(f"#{name}") < 700)
    return str(name)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_its_words_can_be_read(visit: Any, page_file: Path, scheme: str) -> None:
    opened = visit(page_file, color_scheme=scheme)
    assert faint_words(opened.page) == []
    opened.finish()


@pytest.mark.parametrize("width", [1280, 390])
def test_links_lead_to_the_pick_from_strips_and_cards(
    visit: Any, page_file: Path, width: int
) -> None:
    opened = visit(page_file, viewport={"width": width, "height": 844})
    opened.page.locator('svg a[href="#p1-1-3"] .reach').click()
    assert gone_to(opened) == "p1-1-3"
    opened.page.evaluate("window.scrollTo(0, 0)")
    opened.page.locator('.best a[href="#p1-3-1"]').click()
    assert gone_to(opened) == "p1-3-1"
    opened.page.go_back()
    assert gone_to(opened) == "p1-1-3"
    if width < 760:  # the best picks can be reached from anywhere
        opened.page.locator("a.up").click()
        opened.until(lambda: 0 < opened.top_of('.best a[href="#p1-1-1"]') < 844)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    opened.finish()


def test_keys_go_from_pick_to_pick(visit: Any, page_file: Path) -> None:
    opened = visit(page_file)
    picks_after_keys = (
        ("j", "1-1"),
        ("j", "1-2"),
        ("ArrowRight", "2-1"),
        ("ArrowRight", "3-1"),
        ("j", "3-2"),
        ("j", "3-2"),
        ("k", "3-1"),
        ("ArrowLeft", "2-1"),
        ("k", "2-1"),
    )
    for key, pick in picks_after_keys:
        opened.page.keyboard.press(key)
        assert gone_to(opened) == f"p1-{pick}"
    opened.finish()


def test_links_stay_in_a_notebook_s_frame(visit: Any, page_file: Path) -> None:
    opened = visit(page_file.with_name("notebook.html"))
    frame = opened.page.frame_locator("iframe")
    frame.locator('.best a[href="#p1-3-1"]').click()
    opened.until(lambda: 0 < frame.locator("#p1-3-1").bounding_box()["y"] < 844)
    assert frame.locator("h1").count() == 1
    assert opened.page.locator("h1").text_content() == "above"
    opened.finish()


@pytest.mark.parametrize("width", [1280, 390])
def test_the_best_of_each_are_in_view_at_the_beginning(
    visit: Any, page_file: Path, width: int
) -> None:
    opened = visit(page_file, viewport={"width": width, "height": 844})
    tops = {}
    for rank in (1, 2):
        for column in (1, 3):
            box = opened.page.locator(
                f'.best a[href="#p1-{column}-{rank}"]'
            ).bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
            tops[column, rank] = box["y"]
    assert tops[1, 1] < 844
    assert (tops[1, 1] == tops[3, 1]) == (
        width > 760
    )  # rows are aligned, or one below the other
    assert tops[3, 1] < tops[1, 2]
    if width < 760:  # no column is cut off
        rights = (
            "[...document.querySelectorAll('td, tbody th')].map((cell) =>"
            " cell.getBoundingClientRect().right)"
        )
        assert max(opened.page.evaluate(rights)) <= width
    opened.finish()
