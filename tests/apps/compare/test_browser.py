"""The comparison page in a real browser."""

from pathlib import Path
from typing import Any

import pytest

from spscanner_rag.apps.compare import compare
from spscanner_rag.checkpoint.whole_file import write_whole
from tests.apps.compare.fakes import prefers
from tests.fakes import words


def here(visit: Any) -> str:
    """Id of the pick that was gone to, which must be in view."""
    marks = visit.page.locator("mark.here")
    assert marks.count() == 1
    visit.until(lambda: is_in_view(visit, marks.bounding_box()))
    return str(marks.get_attribute("id"))


def is_in_view(visit: Any, box: dict[str, float]) -> bool:
    if not -1 < box["y"] < 700:
        return False
    under = "([x, y]) => document.elementFromPoint(x, y).closest('.cell') !== null"
    return bool(visit.page.evaluate(under, [box["x"] + 3, box["y"] + 8]))  # not under the bar at the top


def press(visit: Any, *keys: str) -> str:
    for key in keys:
        visit.page.keyboard.press(key)
    return here(visit)


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
    return tmp_path / "compare.html"


def test_the_keyboard_goes_from_pick_to_pick(visit: Any, page_file: Path) -> None:
    opened = visit(page_file, viewport={"width": 1280, "height": 800})
    assert press(opened, "j") == "p1-3-1"  # of the retriever that is best
    opened.page.keyboard.press("m")
    assert press(opened, "ArrowRight", "j", "k") == "p1-1-2"  # the first in the document
    assert press(opened, "n") == "p1-1-1"
    assert press(opened, "j") == "p1-1-3"
    assert press(opened, "j") == "p1-1-3"  # the last one
    assert press(opened, "k") == "p1-1-1"
    assert press(opened, "p") == "p1-1-2"
    assert press(opened, "b") == "p1-1-1"
    assert opened.page.locator(".head.c1 .at").text_content().startswith("rank 1 · ")
    assert opened.page.locator("svg a.here").get_attribute("href") == "#p1-1-1"
    assert opened.page.url.endswith("#p1-1-1")
    assert press(opened, "k", "ArrowRight", "ArrowRight") == "p1-3-2"  # by way of the chunk, far below
    assert press(opened, "k") == "p1-3-1"
    assert press(opened, "l") == "p1-1-2"  # around, to the same sentence
    assert press(opened, "h") == "p1-3-1"
    assert press(opened, "ArrowLeft") == "p1-2-1"
    assert opened.page.locator(".head.c1 .at").text_content() == "3 picks"
    opened.page.keyboard.press("m")
    assert opened.page.locator(".miss.here").text_content() == "Line 400"
    opened.until(lambda: -1 < opened.top_of(".miss.here") < 700)
    opened.page.keyboard.press("Control+j")
    assert opened.page.locator("mark.here").count() == 0
    opened.finish()


def test_a_click_on_a_strip_or_on_the_list_goes_to_the_pick(visit: Any, page_file: Path) -> None:
    opened = visit(page_file, viewport={"width": 1280, "height": 800})
    opened.page.locator('svg a[href="#p1-1-3"] .reach').click()
    assert here(opened) == "p1-1-3"
    opened.page.locator(".ranking summary").click()
    opened.page.locator('.ranking a[href="#p1-3-1"]').click()
    assert here(opened) == "p1-3-1"
    opened.page.go_back()
    opened.page.wait_for_function("document.querySelector('mark.here').id === 'p1-1-3'")
    opened.page.goto(f"{opened.address}#p1-2-1")
    opened.page.wait_for_function("document.querySelector('mark.here').id === 'p1-2-1'")
    opened.finish()


def test_a_narrow_screen_shows_one_column(visit: Any, page_file: Path) -> None:
    opened = visit(page_file, viewport={"width": 390, "height": 800})
    assert press(opened, "b") == "p1-3-1"  # of the retriever that is best
    opened.page.locator("button.name").nth(0).click()
    assert press(opened, "b") == "p1-1-1"
    assert not opened.page.locator("#p1-3-1").is_visible()
    opened.page.locator("button.name").nth(2).click()
    assert opened.page.locator("#p1-3-1").is_visible()
    assert not opened.page.locator("#p1-1-1").is_visible()
    assert press(opened, "j") == "p1-3-1"
    assert press(opened, "ArrowRight") == "p1-1-2"
    opened.page.locator("a.up").click()  # the best are at hand from anywhere
    opened.until(lambda: 0 < opened.top_of('.best a[href="#p1-1-1"]') < 800)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 390
    opened.finish()


@pytest.mark.parametrize("width", [1280, 390])
def test_the_best_of_each_are_in_view_at_the_beginning(visit: Any, page_file: Path, width: int) -> None:
    opened = visit(page_file, viewport={"width": width, "height": 844})
    tops = {}
    for rank in (1, 2):
        for column in (1, 3):
            box = opened.page.locator(f'.best a[href="#p1-{column}-{rank}"]').bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
            tops[column, rank] = box["y"]
    assert tops[1, 1] < 844
    assert (tops[1, 1] == tops[3, 1]) == (width > 760)  # rows are aligned, or below each other
    assert tops[3, 1] < tops[1, 2]
    if width < 760:  # no column is clipped
        rights = (
            "[...document.querySelectorAll('td, tbody th')].map((cell) => cell.getBoundingClientRect().right)"
        )
        assert max(opened.page.evaluate(rights)) <= width
    opened.page.locator('.best a[href="#p1-3-1"]').click()
    assert here(opened) == "p1-3-1"
    opened.finish()
