"""The page of an evaluation, in a browser if there is one."""

from pathlib import Path
from typing import Any

import pytest

from spscanner_lab.evaluation.result import EvaluationResult
from spscanner_lab.evaluation.rows import (
    Difference,
)
from spscanner_lab.views.evaluation_page import first_sentence, render_evaluation
from spscanner_rag.baselines.settings import Setting
from tests.apps.pages.checked_page import CheckedPage, check_page, text_of
from tests.lab.views.result_pages import page_with, records
from tests.readable import faint_words


def table_of(page: CheckedPage, caption: str) -> list[list[str]]:
    """The rows of the table whose caption begins with this text."""
    (found,) = (
        each for each in page.all("table") if text_of(each).strip().startswith(caption)
    )
    return [
        [text_of(cell) for cell in row if cell.tag in ("th", "td")]
        for row in found.iter("tr")
    ]


def test_numbers_are_those_of_the_rows(page: CheckedPage) -> None:
    _, scanner, chunks = table_of(page, "macro, 2 sources")
    assert scanner[1].startswith(f"{100 * 15 / 36:.1f}")
    assert scanner[-2:] == chunks[-2:] == ["2,000", "0.50"]


def test_best_is_marked_among_the_same_unit(page: CheckedPage) -> None:
    rows = next(
        table
        for table in page.all("table")
        if text_of(table).strip().startswith("macro")
    ).iter("tr")
    assert [sum(cell.get("class") == "best" for cell in row) for row in rows] == [
        0,
        6,
        6,
    ]  # of each share


def difference(second: str, points: float, p: float, **others: Any) -> Any:
    bounds = {"ci_low": points, "ci_high": points}
    found = {
        "first": "a",
        "second": second,
        "metric": "recall@10",
        "difference": points,
        "p_value": p,
    }
    return found | bounds | others


@pytest.mark.parametrize(
    ("differences", "sentence"),
    [
        ([], "Nothing was compared: there is one retriever."),
        ([difference("b", 0.1, 0.01)], "a is better than b, by more than chance."),
        ([difference("b", -0.1, 0.04)], "a is worse than b, by more than chance."),
        (
            [difference("b", 0.1, 0.05)],
            "No clear winner: between a and b, the difference may be chance.",
        ),
        (
            [
                difference("b", 0.2, 0.001),
                difference("b, chunks", 0.2, 0.001),
                difference("c:/x/d", 0.0, 1.0),
            ],
            (
                "a is better than b and b (chunks), by more than chance. Between a and"
                " c:d, the difference may be chance."
            ),
        ),
    ],
)
def test_the_first_sentence_says_who_is_better(
    differences: list[Difference], sentence: str
) -> None:
    assert first_sentence(differences, {"c:/x/d": "c:d"}) == sentence


def test_the_differences_are_a_picture(page: CheckedPage) -> None:
    pairs = list(page.all("div", "pair"))
    metrics = [text_of(next(pair.iter("small"))) for pair in pairs]
    assert metrics == ["recall in 1,000 tokens"]
    for pair in pairs:
        zero, (point,) = next(pair.iter("line")), pair.iter("circle")
        points = float(text_of(list(pair)[-1]).split()[0])
        assert (float(point.attrib["cx"]) > float(zero.attrib["x1"])) == (points > 0)


@pytest.mark.parametrize(
    ("low", "p", "words"),
    [
        (
            0.05,
            0.3,
            "+10.0 (+5.0 to +20.0), p = 0.300, too few to be sure",
        ),  # the interval excludes zero
        (-0.05, 0.3, "+10.0 (-5.0 to +20.0), p = 0.300, may be chance"),
        (0.05, 0.01, "+10.0 (+5.0 to +20.0), p = 0.010"),
        (None, 0.3, "+10.0, p = 0.300, may be chance"),
    ],
)
def test_a_difference_says_how_sure_it_is(
    low: float | None, p: float, words: str
) -> None:
    shown = difference("b", 0.1, p, ci_low=low, ci_high=0.2)
    page = check_page(
        render_evaluation(
            EvaluationResult([], [shown], [Setting("a"), Setting("b")]), {}
        )
    )
    assert page.text("span", "numbers").strip() == words


def test_one_source_has_one_table() -> None:
    page = check_page(
        page_with(
            [each for each in records() if each.source.startswith("source 0")], []
        )
    )
    assert len(list(page.all("table"))) == 1
    facts = page.text("p", "facts")
    assert facts.startswith("3 questions on 3 documents, 1 source: ")
    assert facts.endswith("Too few to say much about other documents.")
    assert "macro" not in text_of(page.root)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_browser(markup: str, tmp_path: Path, visit: Any, scheme: str) -> None:
    path = tmp_path / "results.html"
    path.write_text(markup, encoding="utf-8")
    opened = visit(path, color_scheme=scheme)
    assert faint_words(opened.page) == []
    assert opened.page.locator(".charts figure svg").count() == 4
    assert opened.page.locator("tbody th", has_text="<script>").count() >= 3
    assert opened.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    opened.finish()
