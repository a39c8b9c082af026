"""The page of results, as text here; in a browser below, where there is one."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spscanner_rag.lab.evaluation.records import Record
from spscanner_rag.lab.evaluation.report.differences import first_sentence, picture
from spscanner_rag.lab.evaluation.report.page import render_page
from spscanner_rag.lab.evaluation.report.plots import Series, looks_of, point_chart
from spscanner_rag.lab.evaluation.report.result import Result
from spscanner_rag.lab.evaluation.report.rows import differences_of, rows_of
from spscanner_rag.lab.evaluation.report.tables import Share, Table
from spscanner_rag.lab.evaluation.settings import Setting
from spscanner_rag.lab.evidence.metrics import CUTOFFS

HOSTILE = '<script>alert(1)</script></style>"&\u202e'
SETTINGS = [Setting("scanner", "sentence"), Setting(f"dense:{HOSTILE}", "chunk")]
METRICS = ("recall", "ndcg", "precision", "success", "mrr")


def records() -> Iterator[Record]:
    for setting in SETTINGS:
        for number in range(6):
            share = number / 6 if setting is SETTINGS[0] else 0.25
            yield Record(
                *setting.key,
                source=f"source {number % 2} {HOSTILE}",
                split="dev",
                doc_id=f"d{number}",
                qid="q",
                characters=7_000 * (number + 1),
                metrics={f"{metric}@{k}": share for metric in METRICS for k in CUTOFFS}
                | {"mrr": share, "recall_at_tokens@250": share, "recall_at_tokens@1000": share},
                tokens={str(k): 40 * k for k in CUTOFFS},
                positions={"50" if setting.unit == "sentence" else "5": [share] * 10},
                seconds=0.5,
            )


@pytest.fixture(scope="module")
def page() -> str:
    found = list(records())
    facts = {"Command": f"spscanner eval {HOSTILE}"}
    differences = differences_of(found, [(SETTINGS[0], SETTINGS[1])])
    return render_page(Result(rows_of(found, SETTINGS), differences, SETTINGS), facts)


def test_names_stay_text(page: str) -> None:
    assert "<script" not in page
    assert page.count("</style>") == 1
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_loads_nothing(page: str) -> None:
    assert "default-src 'none'" in page
    assert not re.search(r"(src|href|url\()\s*=?\s*[\"']?(https?:)?//", page)


def test_numbers_are_those_of_the_rows(page: str) -> None:
    macro = sum(number / 6 for number in range(6)) / 6
    assert f"<td>{100 * macro:.1f}<br>" in page or f'<td class="best">{100 * macro:.1f}<br>' in page
    assert "<td>200 / 2,000</td><td>0.50</td>" in page


def test_best_is_marked_among_the_same_unit(page: str) -> None:
    table = page[page.index("macro, 2 sources") : page.index("micro, 2 sources")]
    for row in re.findall(r"<tr><th scope=\"row\">.*?</tr>", table, re.DOTALL):
        assert row.count('class="best"') == 7


def test_chart() -> None:
    (look,) = looks_of([Setting("<b>", "sentence")])
    share = Share(value=0.2, ci_low=0.1, ci_high=0.3)
    svg = point_chart("A <b>", "x", ["1", "2"], [Series(look, [share, None])])
    assert svg.count("<circle") == 1
    assert svg.count('class="interval') == 1
    assert "polyline" not in svg  # no line through points that were measured apart
    assert "A &lt;b&gt;" in svg
    assert "<title>&lt;b&gt;: 20.0% (10.0 to 30.0)</title>" in svg
    heights = [float(y) for y in re.findall(r'class="grid" x1="[\d.]+" y1="([\d.]+)"', svg)]
    circle = float(re.search(r'cy="([\d.]+)"', svg).group(1))  # type: ignore[union-attr]
    assert circle == pytest.approx(min(heights))  # 20 % is the top of its axis


def test_a_retriever_has_one_colour_and_a_unit_one_shape() -> None:
    settings = [
        Setting("scanner", "sentence"),
        Setting("dense:/models/a", "sentence"),
        Setting("scanner", "sentence", ("first tenth",)),
        Setting("dense:/models/a", "chunk"),
    ]
    looks = looks_of(settings)
    assert [look.colour for look in looks] == ["c1", "c2", "c1", "c2"]
    assert [look.hollow for look in looks] == [False, False, True, False]
    assert [look.label for look in looks] == ["scanner", "dense:a", "scanner, first tenth", "dense:a, chunks"]
    share = Share(value=0.2, ci_low=None, ci_high=None)
    svg = point_chart("t", "x", ["1"], [Series(look, [share]) for look in looks])
    assert svg.count("<circle") == 3
    assert svg.count("<polygon") == 1
    assert 'class="interval' not in svg


def difference(
    second: str, points: float | None, p: float | None, metric: str = "recall@10"
) -> dict[str, object]:
    bounds = {"ci_low": points, "ci_high": points}
    return {"first": "a", "second": second, "metric": metric, "difference": points, "p_value": p} | bounds


@pytest.mark.parametrize(
    ("differences", "sentence"),
    [
        ([], "Nothing was compared: there is one retriever."),
        ([difference("b", 0.1, 0.01)], "a is better than b, by more than chance."),
        ([difference("b", -0.1, 0.04)], "a is worse than b, by more than chance."),
        ([difference("b", 0.1, 0.05)], "No clear winner: between a and b, the difference may be chance."),
        ([difference("b", 0.1, None)], "No clear winner: between a and b, the difference may be chance."),
        (
            [
                difference("b", 0.2, 0.001),
                difference("b", -0.9, 0.001, "ndcg@10"),
                difference("b, chunks", 0.2, 0.001),
                difference("c:/x/d", 0.0, 1.0),
            ],
            "a is better than b and b chunks, by more than chance. Between a and c:d, the difference may be "
            "chance.",
        ),
    ],
)
def test_the_first_sentence_says_who_is_better(differences: list[dict[str, object]], sentence: str) -> None:
    assert first_sentence(differences, {"c:/x/d": "c:d"}) == sentence


def test_the_differences_are_a_picture(page: str) -> None:
    (figure,) = re.findall(r'<figure class="differences">.*?</figure>', page, re.DOTALL)
    assert figure.count('<div class="pair">') == 2
    assert "recall in 1,000 tokens" in figure
    zero = float(re.search(r'class="zero" x1="([\d.]+)"', figure).group(1))  # type: ignore[union-attr]
    for row in re.findall(r'<div class="pair">.*?</div>', figure, re.DOTALL):
        x = float(re.search(r'cx="([\d.]+)"', row).group(1))  # type: ignore[union-attr]
        points = float(re.search(r'class="numbers">([+-][\d.]+)', row).group(1))  # type: ignore[union-attr]
        assert (x > zero) == (points > 0)


def test_one_source_has_one_table() -> None:
    found = [record for record in records() if record.source.startswith("source 0")]
    page = render_page(Result(rows_of(found, SETTINGS), [], SETTINGS), {})
    assert page.count("<table>") == 1
    assert "1 source:" in page
    assert "macro" not in page
    assert "1 sources" not in page


def test_a_table_is_text() -> None:
    table = Table(f"Title {HOSTILE}", "About <it>.", ["name", "<b>"], [[HOSTILE, "1 & 2"]])
    page = render_page(Result(rows_of(records(), SETTINGS), [], SETTINGS, tables=[table]), {})
    assert "<script" not in page
    assert "<p>About &lt;it&gt;.</p>" in page
    assert '<th scope="col">&lt;b&gt;</th>' in page
    assert "<td>1 &amp; 2</td></tr>" in page
    assert page.index("About &lt;it&gt;") < page.index("<h2>By source</h2>")


@pytest.mark.slow
def test_in_a_browser(page: str, tmp_path: Path, browser: Any) -> None:
    path = tmp_path / "results.html"
    path.write_text(page, encoding="utf-8")
    tab = browser.new_page()
    problems: list[str] = []
    tab.on("console", lambda message: problems.append(message.text))
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.on("dialog", lambda dialog: problems.append("a dialog"))
    requests: list[str] = []
    tab.on("request", lambda request: requests.append(request.url))
    tab.goto(path.as_uri())
    assert problems == []
    assert requests == [path.as_uri()]
    assert tab.locator(".charts figure svg").count() == 4
    assert tab.locator("tbody th", has_text="<script>").count() >= 3
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    tab.close()


@pytest.mark.parametrize(
    ("low", "p", "words"),
    [
        (0.05, 0.3, "+10.0 (+5.0 to +20.0), p = 0.300, too few to be sure<"),  # the interval leaves out zero
        (-0.05, 0.3, "+10.0 (-5.0 to +20.0), p = 0.300, may be chance<"),
        (0.05, 0.01, "+10.0 (+5.0 to +20.0), p = 0.010<"),
    ],
)
def test_a_difference_says_how_sure_it_is(low: float, p: float, words: str) -> None:
    assert words in picture([difference("b", 0.1, p) | {"ci_low": low, "ci_high": 0.2}], [])
