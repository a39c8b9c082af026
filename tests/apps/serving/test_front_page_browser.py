"""The page at `/` in a real browser.

It meets files, keys, progress, hostile documents, a token and a phone.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from spscanner_rag.text.escaping import visible
from tests.conftest import Visit
from tests.readable import faint_words

pytestmark = [pytest.mark.slow, pytest.mark.allow_hosts(["127.0.0.1"])]

TEXT = "It rained. The keeper left. She stayed. " * 40


@contextmanager
def opened(
    browser: Any, address: str, troubles: list[str], **context: Any
) -> Iterator[Any]:
    """The page at an address.

    Anything that it logs, and any request to another host, is an error.
    """
    visit = Visit(browser, address, **context)
    try:
        yield visit.page
    finally:
        visit.context.close()
        own = (f"{address}/", f"blob:{address}/")
        troubles += [
            *visit.troubles,
            *(one for one in visit.requests if not one.startswith(own)),
        ]


@pytest.fixture
def visited(browser: Any, address: str) -> Iterator[Callable[..., Any]]:
    """Opens the page with options of a browser context; nothing may go wrong in it."""
    troubles: list[str] = []
    yield lambda **context: opened(browser, address, troubles, **context)
    assert troubles == []


def report(page: Any) -> Any:
    """The document that is shown."""
    page.wait_for_selector("iframe")
    frame = page.frame_locator("iframe")
    frame.locator("mark.here").wait_for(state="attached")
    return frame


@pytest.mark.parametrize(
    ("width", "scheme", "paper"),
    [(1280, "light", "rgb(251, 250, 247)"), (390, "dark", "rgb(22, 23, 26)")],
)
def test_the_keyboard_is_enough(
    visited: Callable[..., Any], width: int, scheme: str, paper: str
) -> None:
    with visited(viewport={"width": width, "height": 800}, color_scheme=scheme) as page:
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == paper
        assert faint_words(page) == []
        for role, name in (
            ("textbox", "Question"),
            ("textbox", "Text of the document"),
            ("button", "Find"),
        ):
            assert page.get_by_role(role, name=name).count() == 1
        assert page.get_by_label("Choose files").count() == 1
        page.keyboard.press("Tab")
        page.keyboard.type("Who left?")
        page.keyboard.press("Enter")
        assert "no document" in page.locator("[role=alert]").text_content()
        for _ in range(2):  # past the Find button and the summary
            page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        page.keyboard.insert_text(TEXT)
        assert (
            page.locator("#named").text_content()
            == f"pasted text, {len(TEXT):,} characters"
        )
        page.keyboard.press("Control+Enter")
        frame = report(page)
        assert page.locator("[role=alert]").is_hidden()
        assert frame.locator("mark").count() == 10
        first = frame.locator("mark.here").get_attribute("id")
        page.wait_for_function(
            "document.activeElement.matches('iframe')"
        )  # the keyboard is in the report
        page.keyboard.press("j")
        frame.locator(f"mark.here:not(#{first})").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_several_files_are_one_report(
    visited: Callable[..., Any], tmp_path: Path
) -> None:
    for name in ("spring", "autumn"):
        (tmp_path / f"{name}.txt").write_text(f"It rained. {name} left.")
    with visited() as page:
        paths = [tmp_path / "spring.txt", tmp_path / "autumn.txt"]
        page.set_input_files("#file", paths)
        page.locator("[role=status]", has_text="Ready").wait_for()
        named = page.locator("#named").text_content()
        assert named == "2 files: spring.txt, autumn.txt"
        page.fill("#query", "Who left?")
        page.click("#go")
        assert report(page).locator("article h2").count() == 2


def test_who_has_no_document_tries_the_example(visited: Callable[..., Any]) -> None:
    with visited() as page:
        page.click("#example")
        frame = report(page)
        assert page.input_value("#query").endswith("?")
        assert frame.locator("mark.here").text_content()
        marked = "".join(frame.locator("mark").all_text_contents())
        text = page.input_value("#text")
        assert len(marked) < len(text) / 2, "what is marked stands out"
        assert text.splitlines()[0] in frame.locator(".text").inner_text().splitlines()


def test_an_answer_is_shown_only_with_its_document_and_question(
    visited: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "log.txt").write_text("It rained. The keeper left.")
    with visited() as page:
        page.fill("#query", "Who left?")
        page.fill("#text", TEXT)
        page.click("#go")
        report(page)
        page.locator("summary").click()
        page.type("#text", "x")
        assert page.locator("iframe").count() == 0
        assert page.locator(".empty").is_visible()
        page.click("#go")
        report(page)
        page.set_input_files("#file", tmp_path / "log.txt")
        assert page.locator("iframe").count() == 0
        page.click("#go")
        report(page)


def test_no_answer_stays_below_a_question_that_failed(
    browser: Any, address: str
) -> None:
    with opened(browser, address, []) as page:
        page.fill("#query", "Who left?")
        page.fill("#text", TEXT)
        page.click("#go")
        report(page)
        page.context.set_offline(True)
        page.fill("#query", "Who stayed?")
        page.click("#go")
        page.locator("[role=alert]", has_text="cannot be reached").wait_for()
        assert page.locator("iframe").count() == 0


def test_a_file_is_chosen_and_taken_back(
    visited: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "log.md"
    path.write_text("# Spring\n\nThe keeper left.\n\nShe stayed.\n", encoding="utf-8")
    with visited() as page:
        page.set_input_files("#file", path)
        page.locator("[role=status]", has_text="Ready").wait_for()
        assert page.locator("#named").text_content() == "log.md"
        assert page.locator("#text").is_hidden()
        page.fill("#query", "Who left?")
        page.click("#go")
        assert report(page).locator("article h2").text_content() == "log.md"
        assert page.locator("[role=status]").text_content().startswith("Read in")
        page.locator("summary").click()
        page.click("#clear")
        assert page.locator("#named").text_content() == "none yet"
        assert page.locator("#text").is_visible()


@pytest.mark.parametrize("width", [1280, 390])
def test_a_pdf_is_shown_as_pages_and_as_text(
    visited: Callable[..., Any],
    tmp_path: Path,
    pdf_of: Callable[..., bytes],
    width: int,
) -> None:
    lines = [f"The keeper left the tower on day {day}." for day in range(40)]
    (tmp_path / "log.pdf").write_bytes(pdf_of([lines, lines, lines]))
    with visited(viewport={"width": width, "height": 800}) as page:
        page.set_input_files("#file", tmp_path / "log.pdf")
        page.fill("#query", "When did the keeper leave?")
        page.click("#go")
        frame = report(page)
        for size, view in (
            (390, "Text"),
            (1280, "Pages"),
            (width, "Pages" if width > 760 else "Text"),
        ):
            page.set_viewport_size({"width": size, "height": 800})
            frame.locator("[aria-pressed=true]", has_text=view).wait_for()
        for view, mark in (("Pages", "figure a.here rect"), ("Text", "mark.here")):
            frame.get_by_role("button", name=view).click()
            frame.locator(mark).first.wait_for()
            assert frame.locator("figure").first.is_visible() == (view == "Pages")
        page.set_viewport_size({"width": 1670 - width, "height": 800})
        frame.locator("[aria-pressed=true]", has_text="Text").wait_for()  # as chosen
        page.set_viewport_size({"width": width, "height": 800})
        assert page.locator("iframe").bounding_box()["y"] < 120
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_document_is_prepared_once_and_given_up_when_another_is_chosen(
    visited: Callable[..., Any], tmp_path: Path
) -> None:
    asked: list[Any] = []
    failed: list[str] = []
    for name, size in (("long.txt", 40_000), ("short.txt", 2)):
        (tmp_path / name).write_text("The keeper left. " * size, encoding="utf-8")
    with visited() as page:
        page.on("request", lambda request: asked.append(request.url.rsplit("/", 1)[-1]))
        page.on("requestfailed", lambda request: failed.append(request.failure))
        page.fill("#text", TEXT)
        page.locator("[role=status]", has_text="Ready").wait_for()
        page.set_input_files("#file", tmp_path / "long.txt")
        page.locator("[role=status]", has_text="being read").wait_for()
        page.set_input_files("#file", tmp_path / "short.txt")
        page.fill("#query", "Who left?")
        page.click("#go")
        report(page)
        assert asked.count("prepare") <= 3
        assert [each for each in asked if each in ("prepare", "page")][-1] == "page"
        assert set(failed) <= {"net::ERR_ABORTED"}


def test_a_dropped_file_is_taken(visited: Callable[..., Any]) -> None:
    drop = """() => {
        const carried = new DataTransfer();
        carried.items.add(new File(["The keeper left. She stayed."], "dropped.txt"));
        const options = { dataTransfer: carried, bubbles: true, cancelable: true };
        document.body.dispatchEvent(new DragEvent("drop", options));
    }"""
    with visited() as page:
        page.evaluate(drop)
        assert page.locator("#named").text_content() == "dropped.txt"
        page.fill("#query", "Who left?")
        page.keyboard.press("Enter")
        assert report(page).locator("mark").count() == 2


def test_a_hostile_document_stays_text(
    visited: Callable[..., Any], hostile_markup: str
) -> None:
    markup = hostile_markup.replace("\ud800", "").replace("\0", "")
    with visited() as page:
        page.fill("#query", f"Who {markup.replace(chr(27), '')}?")
        page.fill("#text", f"It rained.\n\n{markup} {'word' * 5000}\n\nShe stayed.\n")
        page.click("#go")
        frame = report(page)
        assert frame.locator("img, iframe, link, script + script").count() == 0
        assert visible("\x1b") in frame.locator("article").text_content()
        assert page.title() == "spscanner"
        shown = next(frame for frame in page.frames if frame.url.startswith("blob:"))
        assert shown.evaluate("origin") == "null"
        above = (
            "(() => { try { return parent.document.title } catch (e) { return e.name }"
            " })()"
        )
        assert shown.evaluate(above) == "SecurityError"


def test_a_wrong_token_and_a_lost_server_are_told(
    browser: Any, serve: Callable[..., httpx.Client]
) -> None:
    address = str(serve(token="secret").base_url)
    with opened(browser, address, []) as page:
        page.fill("#token", "wrong")
        page.fill("#query", "Who left?")
        page.fill("#text", TEXT)
        page.click("#go")
        page.locator("[role=alert]", has_text="send the server's token").wait_for()
        page.fill("#token", "secret")
        page.click("#go")
        assert report(page).locator("mark").count() == 10
        page.context.set_offline(True)
        page.click("#go")
        page.locator("[role=alert]", has_text="cannot be reached").wait_for()
        assert page.locator("#go").is_enabled()
