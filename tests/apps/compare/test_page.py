"""The comparison page: everything of a document is text in it, and every highlight is a pick."""

import base64
import hashlib
import html
import re
import zipfile
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from spscanner_rag.apps.compare import Comparison, compare
from spscanner_rag.apps.compare.page import render_comparisons
from spscanner_rag.baselines.units import segmenter_of
from spscanner_rag.text.escaping import one_line, visible
from spscanner_rag.text.units import Unit

HOSTILE = """<script>alert(1)</script> </style> <img src=x onerror=alert(2)> javascript:alert(3) &lt;b&gt; "'`
[/INST] [bold]x[/bold] </textarea><!-- --> ]]> \x1b]8;;http://x.example\x07link\x1b]8;;\x07 \x9b31m
\x00 \x08 \x0c \rreturn \u202egnirts\u202c \u2066 \ud800 \U000e0041 {{7*7}} ${x} </div></main></html> last.
"""
ALLOWED_TAGS = set(
    "html head meta title style script body header p h1 h2 h3 small ul ol li b i mark span kbd main section div"
    " table thead tbody tr th td details summary a button svg rect code".split()
)
ALLOWED_ATTRIBUTES = set(
    "lang charset http-equiv content name class dir id href title data-here data-start type scope aria-live"
    " aria-label tabindex data-head viewbox preserveaspectratio role x y width height".split()
)


class Seeded:
    """Scores that follow from a seed."""

    def __init__(self, seed: int, unit: str = "sentence") -> None:
        self.seed, self.unit = seed, unit

    def segment(self, text: str) -> list[Unit]:
        return segmenter_of(self.unit).segment(text)  # type: ignore[arg-type]

    def score_units(self, query: str, text: str, units: Sequence[Unit]) -> NDArray[np.float32]:
        return np.random.default_rng(self.seed).normal(size=len(units)).astype(np.float32)


def words(text: str) -> int:
    return len(text.split())


def comparison_of(
    text: str, *, top_k: int = 3, names: Sequence[str] = ("a", "b"), **options: object
) -> Comparison:
    scorers = {name: Seeded(seed) for seed, name in enumerate(names)} | {"chunks": Seeded(9, "chunk")}
    return compare("Who?", text, scorers, top_k=top_k, count_tokens=words, **options)  # type: ignore[arg-type]


class Page(HTMLParser):
    """Tags, attributes, ids, links; the text of each column; the text of each highlight by its id."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.columns: dict[str, str] = {}
        self.marks: dict[str, str] = {}
        self.evidence: dict[str, str] = {}
        self._open: list[tuple[str, str]] = []
        self._mark: dict[str, str] = {}
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.tags.add(tag)
        self.attributes.update(values)
        self.links += [values["href"]] if "href" in values else []
        classes = values.get("class", "")
        if "id" in values:
            self.ids.append(values["id"])
        if tag == "section" and not self.columns:
            self.columns = {f"cell c{i}": "" for i in range(1, int(classes[-1]) + 1)}
        if tag == "mark" and "id" in values:
            self._mark[self._column()] = values["id"]
        if tag not in ("meta", "rect"):
            self._open.append((tag, classes))

    def handle_endtag(self, tag: str) -> None:
        if tag != "rect":
            assert self._open.pop()[0] == tag

    def _column(self) -> str:
        return next((classes for _, classes in self._open if classes.startswith("cell")), "")

    def handle_data(self, data: str) -> None:
        tags = [tag for tag, _ in self._open]
        classes = [name for _, name in self._open]
        if "b" in tags or "summary" in tags or "cut" in classes or "rows" not in classes:
            return
        column = self._column()
        if not column and "elided" not in classes:
            return
        for name in [column] if column else self.columns:
            self.columns[name] += data
        if "mark" in tags:
            self.marks[self._mark[column]] = self.marks.get(self._mark[column], "") + data
        for kind in ("hit", "miss"):
            if kind in classes:
                self.evidence[f"{kind} {column}"] = self.evidence.get(f"{kind} {column}", "") + data


def check(page: str) -> Page:
    parsed = Page(page)
    assert parsed.tags <= ALLOWED_TAGS
    assert parsed.attributes <= ALLOWED_ATTRIBUTES
    assert len(set(parsed.ids)) == len(parsed.ids)
    assert all(link.startswith("#") and link[1:] in parsed.ids for link in parsed.links)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", page)
    page.encode()
    return parsed


WORDS = st.sampled_from(
    [
        *HOSTILE.split(" "),
        "Plain words. ",
        "\n",
        "\r\n",
        "\n\n\n",
        "Ωμέγα 東京. ",
        "שלום. ",
        "Sentences stand here. " * 9,
    ]
)


@given(st.lists(WORDS, min_size=1, max_size=60).map(" ".join).filter(str.strip))
def test_every_column_shows_the_document_and_highlights_its_picks(text: str) -> None:
    comparison = comparison_of(text)
    parsed = check(comparison.page)
    expected = {
        f"p1-{column}-{pick.rank}": visible(text[pick.start : pick.end])
        for column, retrieval in enumerate(comparison.retrievals, start=1)
        for pick in retrieval.picks
    }
    assert parsed.marks == expected
    assert parsed.columns == {f"cell c{column}": visible(text) for column in (1, 2, 3)}


@pytest.mark.parametrize("ending", ["\n", "\r\n", " "])
def test_a_long_document_is_shown_and_elided_without_a_character_lost(ending: str) -> None:
    text = ending.join(f"Sentence {number} is about as long as a sentence is." for number in range(3000))
    comparison = comparison_of(text, evidence=[(70_000, 70_500)])
    parsed = check(comparison.page)
    whole = text.replace("\r\n", "\n")
    assert parsed.columns == {f"cell c{column}": whole for column in (1, 2, 3)}
    assert comparison.page.count('<details class="gap">') >= 5
    assert "characters elided, line" in comparison.page
    assert len(comparison.page) < 2 * len(text)


def test_evidence_is_green_where_it_was_found_and_red_where_not() -> None:
    text = "One is here. Two is there. Three is gone. Four came back."

    class First(Seeded):
        def score_units(self, query: str, text: str, units: Sequence[Unit]) -> NDArray[np.float32]:
            return -np.arange(len(units), dtype=np.float32)

    scorers = {"a": First(0), "b": First(0, "document")}
    comparison = compare("Who?", text, scorers, top_k=1, evidence=[(4, 19)], count_tokens=words)
    parsed = check(comparison.page)
    assert parsed.evidence == {
        "hit cell c1": "is here.",
        "miss cell c1": " Two is",
        "hit cell c2": "is here. Two is",
    }
    table = re.findall(
        r'<td data-head="Evidence sentences found">(\d of \d)(?: <span class="missed">(\d missed)</span>)?</td>',
        comparison.page,
    )
    assert table == [("1 of 2", "1 missed"), ("2 of 2", "")]


def test_what_only_one_found_is_marked() -> None:
    text = " ".join(f"Sentence {number} stands here." for number in range(300))
    comparison = comparison_of(text, top_k=1)
    page = comparison.page
    for column, retrieval in enumerate(comparison.retrievals, start=1):
        for pick in retrieval.picks:
            kind = "pick only" if pick.only else "pick"
            assert f'<mark class="{kind}" id="p1-{column}-{pick.rank}"' in page
    assert {pick.only for retrieval in comparison.retrievals for pick in retrieval.picks} == {True, False}


def test_the_strips_show_where_the_picks_lie() -> None:
    text = "\n".join(f"Sentence {number} stands here." for number in range(1000))
    comparison = comparison_of(text, top_k=4, evidence=[(0, 5), (20_000, 20_010)])
    strips = re.findall(r"<svg.*?</svg>", comparison.page)
    assert len(strips) == 3
    for column, (strip, retrieval) in enumerate(zip(strips, comparison.retrievals, strict=True), start=1):
        ticks = re.findall(
            r'<a href="#p1-(\d)-(\d)" tabindex="-1"><title>rank \d[^<]*</title>'
            r'<rect class="(?:pick|only)" x="([\d.]+)" width="([\d.]+)"',
            strip,
        )
        places = {int(rank): float(x) for _, rank, x, _ in ticks}
        assert {int(number) for number, *_ in ticks} == {column}
        for pick in retrieval.picks:
            assert places[pick.rank] == pytest.approx(1000 * pick.start / len(text), abs=5.1)
        bars = re.findall(r'<rect class="(found|missed)"', strip)
        assert [bar == "found" for bar in bars] == list(retrieval.found)


def cards(page: str) -> list[tuple[str, str, str]]:
    """Column, rank and text of each card, in the order of the page."""
    return re.findall(
        r'<div class="card c(\d)(?: only)?"><p class="who">[^<]*</p><a href="#[^"]*"><span class="facts">'
        r'<b>(\d)</b>.*?<span class="quote" dir="auto">([^<]*)</span></a></div>',
        page,
    )


def test_the_page_begins_with_the_best_three_of_each_side_by_side() -> None:
    text = "\n".join(f"Sentence {number} stands here." for number in range(300))
    comparison = comparison_of(text, top_k=5)
    page = comparison.page
    expected = [
        (str(column), str(rank), " ".join(text[pick.start : pick.end].split())[:600])
        for rank in (1, 2, 3)
        for column, retrieval in enumerate(comparison.retrievals, start=1)
        for pick in retrieval.picks[rank - 1 : rank]
    ]
    assert [(column, rank, quote.rstrip("…")) for column, rank, quote in cards(page)] == [
        (column, rank, quote.strip()) for column, rank, quote in expected
    ]
    first = comparison.retrievals[0].picks[0]
    line, share = text.count("\n", 0, first.start) + 1, 100 * first.start / len(text)
    assert f"</b> {first.score:.3f} · line {line:,} · at {share:.0f} %<" in page
    parts = [
        page.index(part)
        for part in ("The best 3 of each", "What only one retriever found", "Everything", "All picks by rank")
    ]
    assert parts == sorted(parts)


def test_what_only_one_found_is_listed_under_it() -> None:
    text = "\n".join(f"Sentence {number} stands here." for number in range(300))
    comparison = comparison_of(text, top_k=30)
    only = comparison.page.split("What only one retriever found")[1].split("Everything")[0]
    for column, retrieval in enumerate(comparison.retrievals, start=1):
        (own,) = re.findall(rf'<div class="c{column}"><p class="who">.*?</div>\n', only, re.DOTALL)
        wanted = [pick.rank for pick in retrieval.picks if pick.only]
        assert [int(rank) for rank in re.findall(r"<b>(\d+)</b>", own)] == wanted[:10]
        more = re.findall(r"and (\d+) more", own)
        assert [int(number) for number in more] == ([len(wanted) - 10] if len(wanted) > 10 else [])


def test_labels_are_short_and_whole_names_are_shown_on_hover() -> None:
    scorers = {"dense:/models/of/mine/small": Seeded(0), "bm25": Seeded(1)}
    page = compare("Who?", "One. Two.", scorers, count_tokens=words).page
    assert '<button type="button" class="name" title="dense:/models/of/mine/small">' in page
    assert '<p class="who">dense:small</p>' in page
    assert page.count("/models/of/mine") == 2  # in the column's head and in the table, as titles


def test_hostile_names_and_questions_are_text_too() -> None:
    scorers = {HOSTILE: Seeded(0), HOSTILE + "2": Seeded(1)}
    comparison = compare(HOSTILE, HOSTILE, scorers, top_k=2, count_tokens=words, path=HOSTILE)
    page = render_comparisons([comparison, comparison])
    check(page)
    assert page.count("<script>") == page.count("</script>") == page.count("</style>") == 1
    assert "\\x1b]8;;http://x.example" in page
    assert f"<title>{html.escape(one_line(HOSTILE)[:200])}</title>" in page


def test_the_policy_allows_the_own_style_and_script_and_nothing_else() -> None:
    page = comparison_of(HOSTILE).page

    def digest(tag: str) -> str:
        (content,) = re.findall(f"<{tag}>(.*?)</{tag}>", page, flags=re.DOTALL)
        return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()

    policy = (
        f"default-src 'none'; style-src 'sha256-{digest('style')}'; script-src 'sha256-{digest('script')}'; "
        "base-uri 'none'; form-action 'none'"
    )
    assert f'<meta http-equiv="Content-Security-Policy" content="{policy}">' in page
    assert page.index("Content-Security-Policy") < page.index("<style>")
    assert "url(" not in page.split("</style>")[0]
    assert "@import" not in page


@pytest.mark.parametrize("ending", ["\n", " ", ""])
@pytest.mark.slow
def test_the_page_of_three_million_characters_is_small(ending: str) -> None:
    sentence = "A sentence of some words stands here, and it is as long as most" + ("." if ending else "")
    text = ending.join([sentence] * 46_000)
    comparison = comparison_of(text, top_k=50, evidence=[(1_000_000, 1_000_100)])
    assert len(text) > 2_800_000
    assert len(comparison.page) < 3_000_000
    check(comparison.page)
    omitted = re.findall(r"([\d,]+) characters are not on this page", comparison.page)
    elided = re.findall(r"([\d,]+) characters elided", comparison.page)
    assert sum(int(number.replace(",", "")) for number in omitted) > 1_000_000
    assert sum(int(number.replace(",", "")) for number in elided) > 2_000_000


def test_a_pick_too_long_to_show_says_so() -> None:
    text = "word " * 20_000
    comparison = compare("Who?", text, {"all": Seeded(0, "document")}, count_tokens=words)
    parsed = check(comparison.page)
    assert ", with pick 1 of all</summary>" in comparison.page
    assert parsed.marks["p1-1-1"].startswith("word word")
    assert 4_000 <= len(parsed.marks["p1-1-1"]) < 6_000


def test_several_documents_have_a_section_each() -> None:
    first, second = comparison_of("One here. Two there.", path="a.txt"), comparison_of("Three.", path="b.txt")
    page = render_comparisons([first, second])
    parsed = check(page)
    assert [name for name in parsed.ids if name.startswith("d")] == ["d1", "d2"]
    assert parsed.marks["p2-1-1"] == "Three."
    assert "<h2>b.txt <small>6 characters</small></h2>" in page


def test_titles_of_several_documents_leave_out_the_folders_that_all_share() -> None:
    paths = ["/home/someone/papers/2024/a.txt", "/home/someone/papers/2025/a.txt"]
    page = render_comparisons([comparison_of("One here. Two there.", path=path) for path in paths])
    assert re.findall("<h2>(.*) <small>", page) == ["2024/a.txt", "2025/a.txt"]


def test_a_notebook_gets_the_page_in_a_frame() -> None:
    comparison = comparison_of(HOSTILE)
    shown = comparison._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert 'sandbox="allow-scripts"' in shown

    class Frame(HTMLParser):
        content = ""

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            assert tag == "iframe"
            self.content = dict(attrs)["srcdoc"] or ""

    frame = Frame()
    frame.feed(shown)
    assert frame.content == comparison.page


@pytest.mark.slow
def test_the_wheel_ships_style_and_script(tmp_path: Path) -> None:
    wheel = pytest.importorskip("hatchling.builders.wheel", reason="hatchling is not installed")
    builder = wheel.WheelBuilder(str(Path(__file__).parents[3]))
    built = next(iter(builder.build(directory=str(tmp_path), versions=["standard"])))
    with zipfile.ZipFile(built) as archive:
        assert b".strip" in archive.read("spscanner_rag/apps/compare/page.css")
        assert b"scrollIntoView" in archive.read("spscanner_rag/apps/compare/page.js")
