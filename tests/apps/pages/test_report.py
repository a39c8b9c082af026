"""The HTML page: everything of a document is text in it, and every link leads somewhere."""

import base64
import hashlib
import re
import zipfile
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.apps.pages.report import LEVELS, level_of, render_report
from spscanner_rag.apps.pages.scanned_document import ScannedDocument
from spscanner_rag.files.documents import TextFile
from spscanner_rag.results import ScanResult, Selection
from spscanner_rag.results.together import select_together
from spscanner_rag.text.escaping import visible

VIEWS = Path(__file__).parents[3] / "spscanner_rag" / "apps" / "pages"
HOSTILE = """<script>alert(1)</script> </style> <img src=x onerror=alert(2)> javascript:alert(3) &lt;b&gt; "'`
[/INST] [bold]x[/bold] </textarea><!-- --> ]]> \x1b]8;;http://x.example\x07link\x1b]8;;\x07 \x9b31m
\x00 \x08 \x0c \rreturn \u202egnirts\u202c \u2066 \ud800 \U000e0041 {{7*7}} ${x} </div></main></html> last.
"""


def scan(text: str, *, path: str = "a.txt", top_k: int = 5, seed: int = 0) -> ScannedDocument:
    spans = [match.span() for match in re.finditer(r"[^\s.]+(?:\s+[^\s.]+){0,9}\.?", text)]
    logits = np.random.default_rng(seed).normal(-3, 3, size=len(spans)).astype(np.float32)
    starts, ends = [start for start, _ in spans], [end for _, end in spans]
    result = ScanResult("Who?", text, starts, ends, logits)
    picks = result.select(top_k=top_k, order="score")
    return ScannedDocument(TextFile(path, text), result, picks, picks)


class Page(HTMLParser):
    """Tags, attributes, ids, links and the shown text of each document."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.classes: dict[str, str] = {}
        self.texts: list[str] = []
        self._blocks = 0
        self._open: list[tuple[str, str]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.tags.add(tag)
        self.attributes.update(values)
        if "id" in values:
            self.ids.append(values["id"])
            self.classes[values["id"]] = values.get("class", "")
        if "href" in values:
            self.links.append(values["href"])
        if values.get("class") == "text":
            self.texts.append("")
            self._blocks = 0
        elif tag == "div" and ("div", "text") in self._open:
            self._blocks += 1
            if self._blocks > 1:
                self.texts[-1] += "\n"  # a block begins a line
        if tag != "meta":
            self._open.append((tag, values.get("class", "")))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        classes = [name for _, name in self._open]
        if "text" in classes and "back" not in classes:
            self.texts[-1] += data


ALLOWED_TAGS = set(
    "html head meta title style body header p h1 h2 span div nav details summary ol li a main article mark"
    " code i button kbd svg rect path script".split()
)
ALLOWED_ATTRIBUTES = set(
    "lang charset http-equiv content name class dir aria-label open id href title aria-live tabindex type role x y"
    " width height d viewbox preserveaspectratio data-at data-characters data-rank data-facts data-document"
    " data-step".split()
)


def check(page: str) -> Page:
    parsed = Page(page)
    assert parsed.tags <= ALLOWED_TAGS
    assert parsed.attributes <= ALLOWED_ATTRIBUTES
    assert len(set(parsed.ids)) == len(parsed.ids)
    assert all(link.startswith("#") and link[1:] in parsed.ids for link in parsed.links)
    page.encode()
    return parsed


WORDS = st.sampled_from(
    [*HOSTILE.split(" "), "Plain words. ", "\n", "\r\n", "\n\n\n", "Ωμέγα 東京. ", "שלום. "]
)


@given(st.lists(WORDS, max_size=40).map(" ".join) | st.text(st.characters(), max_size=60))
def test_the_shown_text_is_the_document(text: str) -> None:
    parsed = check(render_report("Who?", "m", [scan(text)]))
    assert parsed.texts == [visible(text)]


def test_blocks_do_not_change_the_text() -> None:
    prose = ("A sentence of some words stands here.\n" * 3 + "\n") * 400
    crlf = prose.replace("\n", "\r\n")
    one_line = "A sentence of some words stands here. " * 4000
    page = render_report("Who?", "m", [scan(prose), scan(one_line), scan(crlf), scan("\n\nOne. ")])
    assert page.count("</div><div data-at=") > 10
    shown = check(page).texts
    assert shown[0] == shown[2] == prose
    assert shown[1].count("\n") == 2  # the only breaks that the document does not have
    assert shown[1].replace("\n", "") == one_line
    assert shown[3] == "\n\nOne. "


def test_hostile_names_are_text_too() -> None:
    page = render_report(HOSTILE, HOSTILE, [scan("One. Two.", path=HOSTILE), scan("Three.", path=HOSTILE)])
    check(page)
    assert page.count("<script") == 1
    assert "\\x1b]8;;http://x.example" in page
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", page)


def test_the_policy_allows_the_own_style_and_script_and_nothing_else() -> None:
    page = render_report("Who?", "m", [scan(HOSTILE)])
    (style,) = re.findall("<style>(.*?)</style>", page, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    (script,) = re.findall("<script>(.*?)</script>", page, flags=re.DOTALL)
    scripted = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; script-src 'sha256-{scripted}'; base-uri 'none'; "
        "form-action 'none'"
    )
    assert f'<meta http-equiv="Content-Security-Policy" content="{policy}">' in page
    assert page.index("Content-Security-Policy") < page.index("<style>")
    assert "url(" not in style
    assert "@import" not in style


def test_the_best_are_listed_in_the_order_asked_for_with_their_rank() -> None:
    document = scan("One one. Two two.\nThree three. Four four.", top_k=3)
    in_order = ScannedDocument(
        document.document, document.result, document.passages, document.result.select(top_k=3)
    )
    for scanned in (document, in_order):
        page = render_report("Who?", "m", [scanned])
        items = re.findall(
            r'<li id="l1-(\d+)"(?: class="best")?><a href="#d1-(\d+)"><span class="rank">(\d)</span>'
            r'<span class="score">([\d.]+)</span><span class="place">(line \d+)</span>',
            page,
        )
        assert [int(item[0]) for item in items] == [scanned.number(passage) for passage in scanned.picks]
        for sentence, target, rank, score, place in items:
            number = int(sentence)
            assert sentence == target
            better = [s for s in scanned.picks if s.score > scanned.result.scores[number]]
            assert int(rank) == len(better) + 1
            assert score == f"{scanned.result.scores[number]:.3f}"
            assert place == ["line 1", "line 1", "line 2", "line 2"][number]


def test_the_list_shows_a_row_of_a_table_without_its_lines() -> None:
    page = render_report("Who?", "m", [scan("| keeper | signed the treaty |")])
    assert '<span class="quote" dir="auto">keeper · signed the treaty</span>' in page
    assert "| keeper | signed the treaty |</mark>" in page  # the text itself stays as it is


def test_a_pick_tells_its_rank_among_those_of_all_documents_and_whose_it_is() -> None:
    files = [
        TextFile(path, text) for path, text in (("a.txt", "One one. Two two."), ('"b".md', "Three. Four."))
    ]
    results = [scan(file.text).result for file in files]
    selected = select_together(results, Selection(top_k=3))
    shown = list(map(ScannedDocument, files, results, *zip(*selected, strict=True)))
    page = render_report("Who?", "default", shown)
    assert "The numbers are ranks over all documents." in page
    assert " · model: the bundled one</p>" in page
    facts = dict(re.findall(r'id="(d\d-\d)"[^>]*? data-facts="([^"]*)"', page))
    for number, (file, of_file) in enumerate(zip(files, selected, strict=True), start=1):
        for pick in of_file.picks:
            name = file.path.replace('"', "&quot;")
            expected = f"{of_file.ranks[pick.start]} of 3 · score {pick.score:.3f} · {name}, line 1 · "
            assert facts.pop(f"d{number}-{pick.start > 0:d}").startswith(expected)
    assert not facts


def test_only_picks_are_highlighted_the_stronger_the_better() -> None:
    scanned = scan(" ".join(f"Sentence number {number}." for number in range(200)), top_k=20)
    page = render_report("Who?", "m", [scanned])
    parsed = check(page)
    numbers = [scanned.number(passage) for passage in scanned.picks]  # best first
    levels = [int(parsed.classes[f"d1-{number}"].removeprefix("s")) for number in numbers]
    assert levels == sorted(levels, reverse=True)
    assert levels[0] == LEVELS
    assert len(set(levels)) > 1
    assert page.count("<mark") == 20
    assert page.count('data-rank="1"') == page.count('class="best"') == 1
    assert f'id="d1-{numbers[0]}" data-rank="1"' in page


@pytest.mark.parametrize(
    ("score", "best", "level"), [(0.3, 0.3, 8), (0.01, 0.3, 1), (0.15, 0.3, 4), (0, 0, 1)]
)
def test_strength_is_the_share_of_the_best_score(score: float, best: float, level: int) -> None:
    assert level_of(score, best) == level


def test_the_strip_shows_where_the_picks_stand() -> None:
    scanned = scan("\n".join(f"Sentence number {number} of many." for number in range(500)), top_k=6)
    page = render_report("Who?", "m", [scanned])
    (strip,) = re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL)
    ticks = re.findall(
        r'<a href="#d1-(\d+)" tabindex="-1"><title>(\d): [\d.]+</title><rect class="tick" x="([\d.]+)"', strip
    )
    found = {int(sentence): float(x) for sentence, _, x in ticks}
    for passage in scanned.picks:
        assert found[scanned.number(passage)] == pytest.approx(
            1000 * passage.start / len(scanned.result.text), abs=6
        )
    assert [int(rank) for _, rank, _ in ticks] == [6, 5, 4, 3, 2, 1]  # the best on top
    assert re.search(r'<path class="profile" d="M\d', strip)


def test_a_wrapped_paragraph_is_shown_in_the_width_of_the_window() -> None:
    wrapped = ("A line of a paragraph that was wrapped at some sixty characters\n" * 9).replace(
        "that", "That"
    )
    page = render_report("Who?", "m", [scan(wrapped + "\nA new paragraph.")])
    assert check(page).texts == [wrapped + "\nA new paragraph."]
    assert page.count("<i>\n</i>") == 8


def test_a_document_of_which_nothing_was_selected() -> None:
    page = render_report("Who?", "m", [scan("One. Two.", top_k=1), ScannedDocument(*_unselected())])
    check(page)
    assert "No sentence was selected." in page


def _unselected() -> tuple[TextFile, ScanResult, tuple[()], tuple[()]]:
    scanned = scan("Nothing here. At all.")
    return scanned.document, scanned.result, (), ()


def test_the_page_is_little_larger_than_the_document() -> None:
    text = "A sentence of some words stands here, and it is as long as most.\n" * 45_000
    page = render_report("Who?", "m", [scan(text, top_k=50)])
    assert len(page) < 1.5 * len(text)
    assert page.count("<span") < 60_000


@pytest.mark.slow
def test_the_wheel_ships_the_style_sheet(tmp_path: Path) -> None:
    wheel = pytest.importorskip("hatchling.builders.wheel", reason="hatchling is not installed")
    builder = wheel.WheelBuilder(str(Path(__file__).parents[3]))
    built = next(iter(builder.build(directory=str(tmp_path), versions=["standard"])))
    with zipfile.ZipFile(built) as archive:
        for name in ("page.css", "report.css", "report.js"):
            assert archive.read(f"spscanner_rag/apps/pages/{name}") == (VIEWS / name).read_bytes()
