"""The charts of an evaluation, on its page."""

from dataclasses import replace
from typing import Any

import pytest

from spscanner_lab.evaluation.result import EvaluationResult
from spscanner_lab.views.evaluation_page import render_evaluation
from spscanner_rag.baselines.settings import Setting
from tests.apps.pages.checked_page import CheckedPage, check_page, text_of
from tests.lab.views.result_pages import page_with, records


def chart(*shares: tuple[float, float | None, float | None]) -> CheckedPage:
    """A page whose first picture shows a share with its interval for each setting."""
    settings = [
        Setting("scanner"),
        Setting("dense:/m/a"),
        Setting("scanner", variants=("<first> tenth",)),
        Setting("dense:/m/a", "chunk"),
    ]
    rows: list[Any] = []
    for setting, (value, low, high) in zip(settings, shares, strict=False):
        row = {"source": "macro", "split": "dev", "metric": "recall", "k": 1}
        row |= {"retriever": setting.name, "unit": setting.unit, "value": value}
        rows.append(row | {"ci_low": low, "ci_high": high})
    return check_page(
        render_evaluation(EvaluationResult(rows, [], settings, cutoffs=[1, 2]), {})
    )


def test_a_chart_has_a_point_with_its_interval_for_each_share_and_no_line() -> None:
    figure = next(chart((0.2, 0.1, 0.3)).all("figure"))
    (point,) = (each for each in figure.iter("path"))
    lines = [
        each.get("class")
        for each in figure.iter("line")
        if "grid" not in each.attrib["class"]
    ]
    assert lines == ["interval c1"]
    assert [text_of(each) for each in figure.iter("title")] == [
        "scanner: 20.0% (10.0 to 30.0)"
    ]
    heights = [
        float(each.attrib["y1"])
        for each in figure.iter("line")
        if each.get("class") == "grid"
    ]
    y = float(point.attrib["transform"].rstrip(")").split()[1])
    assert y == pytest.approx(min(heights))  # 20 % is the top of the picture's axis


def test_a_retriever_has_one_colour_a_unit_one_shape_and_a_variant_is_hollow() -> None:
    page = chart(*[(0.2, None, None)] * 4)
    points = list(next(page.all("figure")).iter("path"))
    assert [each.get("class") for each in points] == [
        "point c1",
        "point c2",
        "point c1 hollow",
        "point c2",
    ]
    assert [each.attrib["d"] == points[0].attrib["d"] for each in points] == [
        True,
        True,
        True,
        False,
    ]
    labels = ["scanner", "dense:a", "scanner, <first> tenth", "dense:a, chunks"]
    assert [text_of(each).strip() for each in page.all("li")] == labels
    assert not list(page.all("line", "interval"))


def test_a_chart_without_a_share_is_left_out() -> None:
    page = chart((0.2, None, None))
    titles = [text_of(title) for title in page.all("h3")]
    assert titles == ["Recall at k"]
    assert "Recall, in pictures" not in text_of(chart().root)


def test_documents_of_one_length_have_no_chart_of_lengths() -> None:
    found = [replace(record, characters=7_000) for record in records()]
    for lengths, shown in (({0}, False), ({0, 8_000}, True)):
        of_lengths = []
        for number, record in enumerate(found):
            length = sorted(lengths)[number % len(lengths)]
            metrics = {"recall@10": 0.5, f"recall_by_length@{length}": 0.5}
            of_lengths.append(replace(record, metrics=metrics))
        page = check_page(page_with(of_lengths, []))
        titles = [text_of(title) for title in page.all("h3")]
        assert ("Recall@10 by length of the document" in titles) == shown
