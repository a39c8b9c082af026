"""The HTML page in a real browser."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.whole_file import write_whole
from spscanner_rag.results import ScanResult
from spscanner_rag.views.escaping import one_line, visible
from spscanner_rag.views.report import render_report
from spscanner_rag.views.scanned_document import ScannedDocument

HOSTILE = (
    "<script>document.title='owned'</script><img src='http://x.example/a.png' onerror=\"alert('owned')\">"
    "<style>body{display:none}</style></style><a href=\"javascript:alert('owned')\">click</a>"
    "<link rel=stylesheet href=//x.example/a.css><iframe src=http://x.example></iframe>"
    " \x1b]8;;x\x07 \u202eevil\u202c"
)


def scanned(sentences: list[str], best: list[int], path: str = "a.txt") -> ScannedDocument:
    text, starts = "", []
    for sentence in sentences:
        starts.append(len(text))
        text += f"{sentence}\n"
    ends = [start + len(sentence) for start, sentence in zip(starts, sentences, strict=True)]
    logits = np.full(len(sentences), -5.0, dtype=np.float32)
    logits[best] = np.linspace(4, 2, num=len(best))
    result = ScanResult("Who?", text, starts, ends, logits)
    picks = result.select(top_k=len(best), order="score")
    return ScannedDocument(TextFile(path, text), result, picks, picks)


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

    def top_of(self, selector: str) -> float:
        return float(self.page.locator(selector).bounding_box()["y"])

    def style(self, selector: str, name: str) -> str:
        script = "([selector, name]) => getComputedStyle(document.querySelector(selector))[name]"
        return str(self.page.evaluate(script, [selector, name]))

    def finish(self) -> None:
        self.context.close()
        assert self.troubles == []
        assert {address.partition("#")[0] for address in self.requests} == {self.address}


@pytest.fixture
def hostile_page(tmp_path: Path) -> Path:
    sentences = [f"Sentence {number} is like the others." for number in range(300)]
    sentences[250] = HOSTILE
    page = render_report(HOSTILE, HOSTILE, [scanned(sentences, [250, 30], path=HOSTILE)])
    write_whole(tmp_path / "report.html", page)
    return tmp_path / "report.html"


def test_a_hostile_document_stays_text(browser: Any, hostile_page: Path) -> None:
    visit = Visit(browser, hostile_page)
    visit.page.wait_for_timeout(200)
    assert visit.page.title() == one_line(HOSTILE)[:200]
    assert (
        visit.page.locator("script, img, iframe, link, article a[href^=javascript], style + style").count()
        == 0
    )
    shown = visit.page.locator("#d1-250").text_content()
    assert shown == visible(HOSTILE)
    assert visit.page.locator("article").is_visible()
    visit.finish()


def test_the_policy_stops_what_would_run_and_load(browser: Any, tmp_path: Path) -> None:
    page = render_report("Who?", "m", [scanned(["One.", "Two."], [1])])
    injected = page.replace("</main>", "<script>document.title='owned'</script><img src='data:,x'></main>")
    write_whole(tmp_path / "report.html", injected)
    visit = Visit(browser, tmp_path / "report.html")
    assert visit.page.title() == "Who?"
    assert sum("Content Security Policy" in trouble for trouble in visit.troubles) >= 2
    visit.context.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_a_click_on_the_list_shows_the_sentence_and_back(
    browser: Any, hostile_page: Path, width: int
) -> None:
    visit = Visit(browser, hostile_page, viewport={"width": width, "height": 800})
    for target in ("d1-250", "d1-30"):
        visit.page.locator(f'nav a[href="#{target}"]').click()
        visit.page.wait_for_function(f"document.querySelector(':target').id == '{target}'")
        assert 0 < visit.top_of(f"#{target}") < 600
        assert visit.style(f"#{target}", "outlineStyle") == "solid"
    visit.page.locator('a.back[href="#l1-30"]').click()
    assert -1 < visit.top_of("#l1-30") < 800
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    visit.finish()


def luminance(colour: str) -> float:
    red, green, blue = (float(part) for part in colour.split("(")[1].rstrip(")").split(",")[:3])
    return (red + green + blue) / 765


def test_light_and_dark(browser: Any, hostile_page: Path) -> None:
    for scheme, is_dark in (("light", False), ("dark", True)):
        visit = Visit(browser, hostile_page, color_scheme=scheme)
        ink, paper = (luminance(visit.style("body", name)) for name in ("color", "backgroundColor"))
        assert (ink > paper) == is_dark
        assert abs(ink - paper) > 0.6
        assert visit.style("#d1-250", "backgroundColor") != visit.style("#d1-30", "backgroundColor")
        visit.finish()


@pytest.mark.slow
def test_a_document_of_three_million_characters(browser: Any, tmp_path: Path) -> None:
    sentence = "A sentence of some words stands here, and it is about as long as most are, in a book"
    sentences = [f"{sentence} {number}." for number in range(33_000)]
    for name, page in (
        ("lines", scanned(sentences, [32_000, 5, 17_000])),
        (
            "paragraphs",
            scanned([" ".join(sentences[i : i + 9]) for i in range(0, 33_000, 9)], [3000, 5, 2000]),
        ),
    ):
        assert len(page.document.text) > 2_900_000
        write_whole(tmp_path / f"{name}.html", render_report("Who?", "m", [page]))
        visit = Visit(browser, tmp_path / f"{name}.html")
        for passage in page.picks:
            target = f"d1-{page.number(passage)}"
            visit.page.locator(f'nav a[href="#{target}"]').click()
            assert 0 < visit.top_of(f"#{target}") < 600
        visit.finish()
