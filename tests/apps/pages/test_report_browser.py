"""The HTML page in a real browser."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from spscanner_rag.apps.pages.report import render_report
from spscanner_rag.apps.pages.scanned_document import ScannedDocument, select_together
from spscanner_rag.files.documents import TextFile
from spscanner_rag.results import ScanResult, Selection
from spscanner_rag.system.whole_files import write_whole
from spscanner_rag.text.escaping import one_line, visible
from tests.readable import faint_words


def scanned(
    sentences: list[str], best: list[int], path: str = "a.txt"
) -> ScannedDocument:
    text, starts = "", []
    for sentence in sentences:
        starts.append(len(text))
        text += f"{sentence}\n"
    ends = [
        start + len(sentence) for start, sentence in zip(starts, sentences, strict=True)
    ]
    logits = np.full(len(sentences), -5.0, dtype=np.float32)
    logits[best] = np.linspace(4, 0, num=len(best))
    result = ScanResult("Who?", text, starts, ends, logits)
    return select_together(
        [TextFile(path, text)], [result], Selection(top_k=len(best), order="score")
    )[0]


@pytest.fixture
def hostile_page(tmp_path: Path, hostile_markup: str) -> Path:
    sentences = [f"Sentence {number} is like the others." for number in range(300)]
    sentences[250] = hostile_markup
    page = render_report(
        hostile_markup,
        hostile_markup,
        [scanned(sentences, [250, 30], path=hostile_markup)],
    )
    write_whole(tmp_path / "report.html", page)
    return tmp_path / "report.html"


def test_a_hostile_document_stays_text(
    visit: Any, hostile_page: Path, hostile_markup: str
) -> None:
    opened = visit(hostile_page)
    assert opened.page.title() == one_line(hostile_markup)[:200]
    forbidden = "img, iframe, link, a[href^=javascript], style + style, script + script"
    assert opened.page.locator(forbidden).count() == 0
    shown = opened.page.locator("#d1-250").text_content()
    assert shown == visible(hostile_markup)
    assert opened.page.locator("article").is_visible()
    opened.finish()


def test_the_policy_stops_what_would_run_and_load(visit: Any, tmp_path: Path) -> None:
    page = render_report("Who?", "m", [scanned(["One.", "Two."], [1])])
    injected = page.replace(
        "</main>", "<script>document.title='owned'</script><img src='data:,x'></main>"
    )
    write_whole(tmp_path / "report.html", injected)
    opened = visit(tmp_path / "report.html")
    assert opened.page.title() == "Who?"
    assert sum("Content Security Policy" in trouble for trouble in opened.troubles) >= 2
    opened.context.close()


def wait_until_seen(opened: Any, selector: str) -> None:
    """Wait until an element is in view and not under the bar at the top.

    The page settles in the next frame.
    """
    opened.page.wait_for_function(
        """selector => {
          const element = document.querySelector(selector);
          const box = element.getClientRects()[0];
          const top = document.elementFromPoint(box.x + 3, box.y + box.height / 2);
          return element.contains(top);
        }""",
        arg=selector,
        timeout=10_000,
    )


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_opens_at_the_best_sentence(
    visit: Any, hostile_page: Path, width: int
) -> None:
    opened = visit(hostile_page, viewport={"width": width, "height": 800})
    assert opened.page.locator("mark.here").get_attribute("id") == "d1-250"
    wait_until_seen(opened, "#d1-250")
    assert (
        opened.page.locator(".at")
        .text_content()
        .startswith("1 of 2 · score 0.982 · line 251 · ")
    )
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    opened.finish()


@pytest.mark.parametrize("width", [1280, 390])
def test_keys_and_buttons_go_from_pick_to_pick(
    visit: Any, hostile_page: Path, width: int
) -> None:
    opened = visit(hostile_page, viewport={"width": width, "height": 800})
    picks = (
        ("k", 30),
        ("k", 30),
        ("j", 250),
        ("j", 250),
        ("p", 30),
        ("n", 250),
        ("k", 30),
        ("b", 250),
    )
    for key, pick in picks:
        opened.page.keyboard.press(key)
        assert opened.page.locator("mark.here").get_attribute("id") == f"d1-{pick}"
        wait_until_seen(opened, f"#d1-{pick}")
    assert opened.page.url.endswith("#d1-250")
    opened.page.locator("button[data-step='-1']").click()
    wait_until_seen(opened, "#d1-30")
    opened.page.keyboard.press("Control+j")
    assert opened.page.locator("mark.here").get_attribute("id") == "d1-30"
    assert opened.page.locator("svg a.here").get_attribute("href") == "#d1-30"
    opened.finish()


def test_a_click_on_the_strip_goes_there(visit: Any, hostile_page: Path) -> None:
    opened = visit(hostile_page, viewport={"width": 1280, "height": 800})
    box = opened.page.locator("svg.strip").bounding_box()
    opened.page.mouse.click(box["x"] + 0.6 * box["width"], box["y"] + 20)
    shown = "document.elementFromPoint(700, 420).textContent"
    opened.until(lambda: "Sentence 18" in opened.page.evaluate(shown))
    opened.page.locator('svg a[href="#d1-30"] .reach').click()
    wait_until_seen(opened, "#d1-30")
    opened.until(
        lambda: float(opened.page.locator("svg .now").get_attribute("x")) < 200
    )
    opened.finish()


@pytest.mark.parametrize("width", [1280, 390])
def test_a_click_on_the_list_shows_the_sentence_and_back(
    visit: Any, hostile_page: Path, width: int
) -> None:
    opened = visit(hostile_page, viewport={"width": width, "height": 800})
    for target in ("d1-250", "d1-30"):
        if (
            width < 760
        ):  # the list is a drawer at the bottom, and choosing an entry closes it
            opened.page.locator("nav summary").click()
        opened.page.locator(f'nav a[href="#{target}"]').click()
        wait_until_seen(opened, f"#{target}")
        assert opened.style(f"#{target}", "outlineStyle") == "solid"
    opened.page.go_back()
    opened.page.wait_for_function("document.querySelector('mark.here').id === 'd1-250'")
    opened.page.locator('a.back[href="#l1-250"]').click()
    opened.until(lambda: -1 < opened.top_of("#l1-250") < 800)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    opened.finish()


def test_without_its_script_the_links_work(visit: Any, hostile_page: Path) -> None:
    opened = visit(
        hostile_page, viewport={"width": 1280, "height": 800}, java_script_enabled=False
    )
    opened.page.locator('nav a[href="#d1-250"]').click()
    opened.until(lambda: 100 < opened.top_of("#d1-250") < 700)
    opened.finish()


def test_light_dark_and_print(visit: Any, hostile_page: Path) -> None:
    for scheme, is_dark in (("light", False), ("dark", True)):
        opened = visit(hostile_page, color_scheme=scheme)
        ink, paper = (
            opened.brightness("body", name) for name in ("color", "backgroundColor")
        )
        assert (ink > paper) == is_dark
        assert abs(ink - paper) > 0.6
        assert faint_words(opened.page) == []
        assert opened.style("#d1-250", "backgroundColor") != opened.style(
            "#d1-30", "backgroundColor"
        )
        opened.finish()
    opened = visit(
        hostile_page, viewport={"width": 1280, "height": 800}, color_scheme="dark"
    )
    opened.page.emulate_media(media="print", color_scheme="dark")
    assert opened.brightness("body", "backgroundColor") > 0.9
    assert opened.page.evaluate("document.documentElement.scrollHeight") > 3000
    assert not opened.page.locator(".bar").is_visible()
    opened.finish()


def test_the_outline_of_the_last_sentence_is_whole(visit: Any, tmp_path: Path) -> None:
    page = render_report("Who?", "m", [scanned(["One.", "Two left."], [1])])
    write_whole(tmp_path / "report.html", page)
    opened = visit(tmp_path / "report.html")
    box = opened.page.locator("mark.here").bounding_box()
    drawn = opened.style("mark.here", "outlineColor")
    for y in (box["y"] - 4, box["y"] + box["height"] + 3):  # above it and below it
        area = {"x": box["x"] + box["width"] / 2, "y": y, "width": 1, "height": 1}
        shot = opened.page.screenshot(clip=area)
        red, green, blue = Image.open(io.BytesIO(shot)).convert("RGB").getpixel((0, 0))
        assert f"rgb({red}, {green}, {blue})" == drawn
    opened.finish()
