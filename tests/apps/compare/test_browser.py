"""The comparison page in a real browser."""

from pathlib import Path
from typing import Any

import pytest

from spscanner_rag.apps.compare import Comparison, compare
from spscanner_rag.checkpoint.whole_file import write_whole
from spscanner_rag.text.escaping import one_line, visible
from tests.apps.compare.fakes import Prefers, words


def comparison_of(lines: list[str], name: str = "bm25", **options: Any) -> Comparison:
    text = "\n\n".join(lines)
    scorers = {
        "scanner": Prefers(["Line 300 ", "Line 20 ", "Line 500 "]),
        "dense (chunk)": Prefers(["Line 500 "], "chunk"),
        name: Prefers(["Line 20 ", "Line 400 "]),
    }
    evidence = [(text.index("Line 400 "), text.index("Line 400 ") + 8)]
    options = {"query": "Who?", "path": "a.txt"} | options
    query = options.pop("query")
    return compare(query, text, scorers, top_k=[3, 1, 2], evidence=evidence, count_tokens=words, **options)


LINES = [f"Line {number} is like all of the others." for number in range(600)]


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
def comparison(hostile_markup: str) -> Comparison:
    lines = list(LINES)
    lines[300] = f"Line 300 {hostile_markup}"
    return comparison_of(lines, hostile_markup, query=hostile_markup, path=hostile_markup)


@pytest.fixture
def page_file(tmp_path: Path, comparison: Comparison) -> Path:
    write_whole(tmp_path / "compare.html", comparison.page)
    return tmp_path / "compare.html"


def test_a_hostile_document_stays_text(visit: Any, page_file: Path, hostile_markup: str) -> None:
    opened = visit(page_file)
    assert opened.page.title() == one_line(hostile_markup)[:200]
    assert opened.page.locator("script").count() == 1
    assert opened.page.locator("img, iframe, link, style + style, a[href^=javascript]").count() == 0
    assert visible(hostile_markup) in "".join(opened.page.locator(".cell.c2").all_text_contents())
    assert opened.page.locator(".heads").is_visible()
    opened.finish()


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


def test_an_elided_stretch_unfolds(visit: Any, page_file: Path) -> None:
    opened = visit(page_file)
    gap = opened.page.locator(".gap", has_text="Line 100 ").first
    assert not gap.locator(".elided").is_visible()
    gap.locator("summary").click()
    assert gap.locator(".elided").is_visible()
    assert "Line 100 is like" in gap.locator(".elided").inner_text()
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


@pytest.mark.slow
def test_light_dark_and_print(visit: Any, page_file: Path) -> None:
    for scheme, media, is_dark in (
        ("light", "screen", False),
        ("dark", "screen", True),
        ("dark", "print", False),
    ):
        opened = visit(page_file, color_scheme=scheme)
        opened.page.emulate_media(media=media, color_scheme=scheme)
        ink, paper = (opened.brightness("body", name) for name in ("color", "backgroundColor"))
        assert (ink > paper) == is_dark
        assert abs(ink - paper) > 0.6
        red, green, _ = opened.style(".miss", "color").split("(")[1].rstrip(")").split(",")
        assert float(red) > 1.5 * float(green)
        assert opened.style(".heads", "position") == ("static" if media == "print" else "sticky")
        assert opened.page.locator(".keys").is_visible() == (media == "screen")
        assert opened.page.locator("#p1-3-1").is_visible()
        opened.finish()


def test_the_frame_of_a_notebook_works(visit: Any, tmp_path: Path) -> None:
    notebook = f"<!doctype html><meta charset=utf-8><title>nb</title>{comparison_of(LINES)._repr_html_()}"
    write_whole(tmp_path / "notebook.html", notebook)
    opened = visit(tmp_path / "notebook.html", viewport={"width": 1280, "height": 900})
    frame = opened.page.frame_locator("iframe")
    frame.locator('svg a[href="#p1-1-3"] .reach').click()
    frame.locator("mark#p1-1-3.here").wait_for()
    opened.page.keyboard.press("k")
    frame.locator("mark#p1-1-1.here").wait_for()
    opened.until(lambda: frame.locator("mark.here").bounding_box()["y"] < 700)
    opened.context.close()
    assert opened.troubles == []
    assert {address.partition("#")[0] for address in opened.requests} <= {opened.address, "about:srcdoc"}
