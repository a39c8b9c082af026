"""The comparison page in a real browser."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from spscanner_rag.baselines.units import segmenter_of
from spscanner_rag.comparison import Comparison, compare
from spscanner_rag.files.whole_file import write_whole
from spscanner_rag.text.units import Unit
from spscanner_rag.views.escaping import one_line, visible

HOSTILE = (
    "<script>document.title='owned'</script><img src='http://x.example/a.png' onerror=\"alert('owned')\">"
    "<style>body{display:none}</style></style><a href=\"javascript:alert('owned')\">click</a>"
    "<link rel=stylesheet href=//x.example/a.css><iframe src=http://x.example></iframe>"
    " \x1b]8;;x\x07 \u202eevil\u202c \ud800 \x00"
)


class Prefers:
    """Scores the units that hold certain words, the first of them best."""

    def __init__(self, wanted: Sequence[str], unit: str = "sentence") -> None:
        self.wanted, self.unit = wanted, unit

    def segment(self, text: str) -> list[Unit]:
        return segmenter_of(self.unit).segment(text)  # type: ignore[arg-type]

    def score_units(self, query: str, text: str, units: Sequence[Unit]) -> NDArray[np.float32]:
        values = [
            next((-i for i, word in enumerate(self.wanted) if word in text[unit.start : unit.end]), -50)
            for unit in units
        ]
        return np.array(values, np.float32)


def words(text: str) -> int:
    return len(text.split())


def comparison_of(lines: list[str], **options: Any) -> Comparison:
    text = "\n\n".join(lines)
    scorers = {
        "scanner": Prefers(["Line 300 ", "Line 20 ", "Line 500 "]),
        "dense (chunk)": Prefers(["Line 500 "], "chunk"),
        HOSTILE: Prefers(["Line 20 ", "Line 400 "]),
    }
    evidence = [(text.index("Line 400 "), text.index("Line 400 ") + 8)]
    options = {"query": "Who?", "path": "a.txt"} | options
    query = options.pop("query")
    return compare(query, text, scorers, top_k=[3, 1, 2], evidence=evidence, count_tokens=words, **options)


LINES = [f"Line {number} is like all of the others." for number in range(600)]


class Visit:
    """A page that was opened, with all that it logged and asked for."""

    def __init__(self, browser: Any, path: Path, **context: Any) -> None:
        self.context = browser.new_context(**context)
        self.page = self.context.new_page()
        self.troubles: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.troubles.append(message.text))
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("dialog", lambda dialog: self.troubles.append(dialog.message))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.address = path.as_uri()

    def here(self) -> str:
        """Id of the pick that was gone to, which must be in view."""
        marks = self.page.locator("mark.here")
        assert marks.count() == 1
        box = marks.bounding_box()
        assert -1 < box["y"] < 700
        assert self.page.evaluate(  # under the bar that stays at the top, it would not be seen
            "([x, y]) => document.elementFromPoint(x, y).closest('.cell') !== null",
            [box["x"] + 3, box["y"] + 8],
        )
        return str(marks.get_attribute("id"))

    def press(self, *keys: str) -> str:
        for key in keys:
            self.page.keyboard.press(key)
        return self.here()

    def style(self, selector: str, name: str) -> str:
        script = "([selector, name]) => getComputedStyle(document.querySelector(selector))[name]"
        return str(self.page.evaluate(script, [selector, name]))

    def finish(self) -> None:
        self.context.close()
        assert self.troubles == []
        assert {address.partition("#")[0] for address in self.requests} == {self.address}


@pytest.fixture
def page_file(tmp_path: Path) -> Path:
    lines = list(LINES)
    lines[300] = f"Line 300 {HOSTILE}"
    write_whole(tmp_path / "compare.html", comparison_of(lines, query=HOSTILE, path=HOSTILE).page)
    return tmp_path / "compare.html"


def test_a_hostile_document_stays_text(browser: Any, page_file: Path) -> None:
    visit = Visit(browser, page_file)
    visit.page.wait_for_timeout(200)
    assert visit.page.title() == one_line(HOSTILE)[:200]
    assert visit.page.locator("script").count() == 1
    assert visit.page.locator("img, iframe, link, style + style, a[href^=javascript]").count() == 0
    assert visible(HOSTILE) in "".join(visit.page.locator(".cell.c2").all_text_contents())
    assert visit.page.locator(".heads").is_visible()
    visit.finish()


def test_highlights_are_the_picks(browser: Any, page_file: Path) -> None:
    lines = list(LINES)
    lines[300] = f"Line 300 {HOSTILE}"
    comparison = comparison_of(lines)
    visit = Visit(browser, page_file)
    shown = visit.page.evaluate("""() => [1, 2, 3].map((column) => {
      const found = {};
      let id = "";
      for (const mark of document.querySelectorAll(`.cell.c${column} mark`)) {
        id = mark.id || id;
        found[id] = (found[id] ?? "") + mark.textContent;
      }
      return found;
    })""")
    for column, (found, retrieval) in enumerate(zip(shown, comparison.retrievals, strict=True), start=1):
        assert found == {
            f"p1-{column}-{pick.rank}": visible(comparison.text[pick.start : pick.end])
            for pick in retrieval.picks
        }
    visit.finish()


def test_the_keyboard_goes_from_pick_to_pick(browser: Any, page_file: Path) -> None:
    visit = Visit(browser, page_file, viewport={"width": 1280, "height": 800})
    assert visit.press("j") == "p1-1-2"  # the first in the document
    assert visit.press("n") == "p1-1-1"
    assert visit.press("j") == "p1-1-3"
    assert visit.press("j") == "p1-1-3"  # the last one
    assert visit.press("k") == "p1-1-1"
    assert visit.press("p") == "p1-1-2"
    assert visit.press("b") == "p1-1-1"
    assert visit.page.locator(".head.c1 .at").text_content().startswith("rank 1 · ")
    assert visit.page.locator("svg a.here").get_attribute("href") == "#p1-1-1"
    assert visit.page.url.endswith("#p1-1-1")
    assert visit.press("k", "ArrowRight", "ArrowRight") == "p1-3-2"  # by way of the chunk, far below
    assert visit.press("k") == "p1-3-1"
    assert visit.press("l") == "p1-1-2"  # around, to the same sentence
    assert visit.press("h") == "p1-3-1"
    assert visit.press("ArrowLeft") == "p1-2-1"
    assert visit.page.locator(".head.c1 .at").text_content() == "3 picks"
    visit.page.keyboard.press("m")
    assert visit.page.locator(".miss.here").text_content() == "Line 400"
    assert -1 < visit.page.locator(".miss.here").bounding_box()["y"] < 700
    visit.page.keyboard.press("Control+j")
    assert visit.page.locator("mark.here").count() == 0
    visit.finish()


def test_a_click_on_a_strip_or_on_the_list_goes_to_the_pick(browser: Any, page_file: Path) -> None:
    visit = Visit(browser, page_file, viewport={"width": 1280, "height": 800})
    visit.page.locator('svg a[href="#p1-1-3"] .reach').click()
    assert visit.here() == "p1-1-3"
    visit.page.locator(".ranking summary").click()
    visit.page.locator('.lists a[href="#p1-3-1"]').click()
    assert visit.here() == "p1-3-1"
    visit.page.go_back()
    visit.page.wait_for_function("document.querySelector('mark.here').id === 'p1-1-3'")
    visit.page.goto(f"{visit.address}#p1-2-1")
    visit.page.wait_for_function("document.querySelector('mark.here').id === 'p1-2-1'")
    visit.finish()


def test_an_elided_stretch_unfolds(browser: Any, page_file: Path) -> None:
    visit = Visit(browser, page_file)
    gap = visit.page.locator(".gap", has_text="Line 100 ").first
    assert not gap.locator(".elided").is_visible()
    gap.locator("summary").click()
    assert gap.locator(".elided").is_visible()
    assert "Line 100 is like" in gap.locator(".elided").inner_text()
    visit.finish()


def test_a_narrow_screen_shows_one_column(browser: Any, page_file: Path) -> None:
    visit = Visit(browser, page_file, viewport={"width": 390, "height": 800})
    assert visit.press("b") == "p1-1-1"
    assert not visit.page.locator("#p1-3-1").is_visible()
    visit.page.locator("button.name").nth(2).click()
    assert visit.page.locator("#p1-3-1").is_visible()
    assert not visit.page.locator("#p1-1-1").is_visible()
    assert visit.press("j") == "p1-3-1"
    assert visit.press("ArrowRight") == "p1-1-2"
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 390
    visit.finish()


def luminance(colour: str) -> float:
    red, green, blue = (float(part) for part in colour.split("(")[1].rstrip(")").split(",")[:3])
    return (red + green + blue) / 765


def test_light_dark_and_print(browser: Any, page_file: Path) -> None:
    for scheme, media, is_dark in (
        ("light", "screen", False),
        ("dark", "screen", True),
        ("dark", "print", False),
    ):
        visit = Visit(browser, page_file, color_scheme=scheme)
        visit.page.emulate_media(media=media, color_scheme=scheme)
        ink, paper = (luminance(visit.style("body", name)) for name in ("color", "backgroundColor"))
        assert (ink > paper) == is_dark
        assert abs(ink - paper) > 0.6
        red, green, _ = visit.style(".miss", "color").split("(")[1].rstrip(")").split(",")
        assert float(red) > 1.5 * float(green)
        assert visit.style(".heads", "position") == ("static" if media == "print" else "sticky")
        assert visit.page.locator(".keys").is_visible() == (media == "screen")
        assert visit.page.locator("#p1-3-1").is_visible()
        visit.finish()


def test_the_policy_stops_what_would_run_and_load(browser: Any, tmp_path: Path) -> None:
    page = comparison_of(LINES).page
    injected = page.replace("</main>", "<script>document.title='owned'</script><img src='data:,x'></main>")
    write_whole(tmp_path / "compare.html", injected)
    visit = Visit(browser, tmp_path / "compare.html")
    assert visit.page.title() == "Who?"
    assert sum("Content Security Policy" in trouble for trouble in visit.troubles) >= 2
    visit.context.close()


def test_the_frame_of_a_notebook_works(browser: Any, tmp_path: Path) -> None:
    notebook = f"<!doctype html><meta charset=utf-8><title>nb</title>{comparison_of(LINES)._repr_html_()}"
    write_whole(tmp_path / "notebook.html", notebook)
    visit = Visit(browser, tmp_path / "notebook.html", viewport={"width": 1280, "height": 900})
    frame = visit.page.frame_locator("iframe")
    frame.locator('svg a[href="#p1-1-3"] .reach').click()
    assert frame.locator("mark.here").get_attribute("id") == "p1-1-3"
    visit.page.keyboard.press("k")
    assert frame.locator("mark.here").get_attribute("id") == "p1-1-1"
    assert frame.locator("mark.here").bounding_box()["y"] < 700
    visit.context.close()
    assert visit.troubles == []
    assert {address.partition("#")[0] for address in visit.requests} <= {visit.address, "about:srcdoc"}


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["\n\n", " "])
def test_three_million_characters_and_a_line_of_300_000(browser: Any, tmp_path: Path, ending: str) -> None:
    sentence = "is about as long as most are, and says nothing at all about who signed the treaty at last"
    lines = [f"Line {number} {sentence}." for number in range(30_000)]
    lines[15_000] = "unbroken" * 40_000
    text = ending.join(lines)
    scorers = {"a": Prefers(["Line 29000 ", "Line 7 "]), "b": Prefers(["unbroken"], "document")}
    comparison = compare("Who?", text, scorers, top_k=[2, 1], count_tokens=words)
    assert len(text) > 3_000_000
    write_whole(tmp_path / "compare.html", comparison.page)
    assert (tmp_path / "compare.html").stat().st_size < 2_000_000
    visit = Visit(browser, tmp_path / "compare.html", viewport={"width": 1280, "height": 800})
    assert visit.press("b") == "p1-1-1"
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 1280
    visit.finish()
