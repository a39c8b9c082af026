"""The result of an evaluation as one HTML page: who is better, tables, and charts without a script."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from spscanner_rag.apps.pages.html_page import page_style, render
from spscanner_rag.apps.pages.labels import listed, short_labels

CHANCE = 0.05  # a difference with a smaller p is significant
FEW_DOCUMENTS, FEW_QUESTIONS = 5, 30  # fewer are called few
COLOURS = 8  # classes c1 to c8 of page.css
METRICS = {
    "recall@10": "recall@10",
    "ndcg@10": "nDCG@10",
    "recall_at_tokens@1000": "recall in 1,000 tokens",
    "recall_at_tokens@2000": "recall in 2,000 tokens",
    "document_mrr": "MRR of the document",
}

SHAPES = {
    "sentence": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "chunk": "M-4-4h8v8h-8z",
    "passage": "M0-5.6 5.6 0 0 5.6-5.6 0z",
    "document": "M0-4.8 4.8 4-4.8 4z",
}
"""Outlines of the markers: a circle, a square, a diamond and a triangle."""

Share = Mapping[str, Any]
"""A "value" from 0 to 1 with "ci_low" and "ci_high", which are None where there is no interval."""

Difference = Mapping[str, object]  # a row of ``differences.json``


Table = Any
"""Has a title, a paragraph ``about`` it, a head, and a body of rows whose cells are text or a `Share`; ``best``
has the row and column of each cell to mark."""


class Setting(NamedTuple):
    """A retriever and its unit, with its label in tables; a variant of a plain setting is drawn hollow."""

    retriever: str
    unit: str
    label: str
    is_variant: bool = False


class Look(NamedTuple):
    """The look of a setting everywhere on the page: one colour for a retriever, one shape for a unit."""

    label: str
    name: str  # the whole label
    colour: str  # class
    shape: str
    hollow: bool  # a variant of a setting


@dataclass(frozen=True)
class Chart:
    """Shares of each setting of the page over evenly spaced ticks; None where there is none."""

    title: str
    x_label: str
    ticks: Sequence[int]
    series: Sequence[Sequence[Share | None]]

    width, height, left, right, top, bottom = 560, 300, 54, 14, 14, 44

    @property
    def step(self) -> float:
        """The distance of two lines of the grid."""
        return 0.2 if self._highest > 0.5 else 0.1 if self._highest > 0.2 else 0.05

    @property
    def most(self) -> float:
        """The share at the top: the next line above all values."""
        return min(1.0, self.step * math.ceil(self._highest / self.step - 1e-9))

    @property
    def lines(self) -> list[float]:
        """The shares that have a line of the grid."""
        return [number * self.step for number in range(round(self.most / self.step) + 1)]

    def x(self, tick: int, series: int | None = None) -> float:
        """The place of a tick, and of one of the series beside it."""
        room = (self.width - self.left - self.right) / max(1, len(self.ticks))
        apart = min(8.0, 0.8 * room / max(1, len(self.series)))
        shift = 0.0 if series is None else apart * (series - (len(self.series) - 1) / 2)
        return self.left + room * (tick + 0.5) + shift

    def y(self, share: float) -> float:
        """The height of a share, counted from the top."""
        inside = min(max(share, 0.0), self.most)
        return self.top + (self.height - self.top - self.bottom) * (1 - inside / self.most)

    @property
    def _highest(self) -> float:
        return max([0.05, *(float(share["value"]) for own in self.series for share in own if share)])


@dataclass(frozen=True)
class EvaluationPage:
    """The content of the page of a result.

    ``asked``: the numbers of questions and documents. ``averages``: the tables at the top. ``charts`` and
    ``tables`` follow in this order, then ``by_source``, a table each, and the paired ``tests``.
    """

    settings: Sequence[Setting]
    sources: Sequence[str]
    differences: Sequence[Difference]
    asked: tuple[int, int] | None
    averages: Sequence[Table]
    charts: Sequence[Chart]
    tables: Sequence[Table] = ()
    by_source: Sequence[Table] = ()
    tests: Sequence[Table] = ()


def render_evaluation(page: EvaluationPage, facts: Mapping[str, str]) -> str:
    """The page, as a string to be written in UTF-8; it shows ``facts`` such as command, machine and date."""
    looks = looks_of(page.settings)
    labels = {look.name: look.label for look in looks}
    questions, documents = page.asked or (FEW_QUESTIONS, FEW_DOCUMENTS)
    return render(
        "pages/templates/evaluation.html",
        "Retrieval of evidence",
        page_style("pages/templates/evaluation.css"),
        page=page,
        facts=facts,
        looks=looks,
        by_name={look.name: look for look in looks},
        sentence=first_sentence(page.differences, labels),
        measured_by=[METRICS.get(name, name) for name in _first_metrics(page.differences)],
        few=questions < FEW_QUESTIONS or documents < FEW_DOCUMENTS,
        several_units=len({setting.unit for setting in page.settings}) > 1,
        metrics=METRICS,
        chance=CHANCE,
        reach=_reach(page.differences),
        listed=listed,
    )


def looks_of(settings: Sequence[Setting]) -> list[Look]:
    """The look of each setting: one colour for a retriever, whatever its unit and variants."""
    retrievers = list(dict.fromkeys(setting.retriever for setting in settings))
    labels = short_labels([setting.label for setting in settings])
    return [
        Look(
            label,
            setting.label,
            f"c{retrievers.index(setting.retriever) % COLOURS + 1}",
            SHAPES.get(setting.unit, SHAPES["document"]),
            setting.is_variant,
        )
        for label, setting in zip(labels, settings, strict=True)
    ]


def first_sentence(differences: Sequence[Difference], labels: Mapping[str, str]) -> str:
    """Say who is better, and whether significantly, by the first metric of each pair; ``labels`` are short."""
    if not differences:
        return "Nothing was compared: there is one retriever."
    first = str(differences[0]["first"])
    groups: dict[str, list[str]] = {"better": [], "worse": [], "even": []}
    for second, test in _first_tests(differences).items():
        p, points = _number(test["p_value"]), _number(test["difference"]) or 0.0
        kind = "even" if p is None or p >= CHANCE else "better" if points > 0 else "worse"
        groups[kind].append(_in_prose(labels.get(second, second)))
    name = _in_prose(labels.get(first, first))
    sentences = [
        f"{name} is {kind} than {listed(groups[kind])}, by more than chance."
        for kind in ("better", "worse")
        if groups[kind]
    ]
    if groups["even"]:
        opening = "Between" if sentences else "No clear winner: between"
        sentences.append(f"{opening} {name} and {listed(groups['even'])}, the difference may be chance.")
    return " ".join(sentences)


def _first_tests(differences: Sequence[Difference]) -> dict[str, Difference]:
    """The first test of each retriever against the first one of all."""
    found: dict[str, Difference] = {}
    for test in differences:
        if test["first"] == differences[0]["first"]:
            found.setdefault(str(test["second"]), test)
    return found


def _first_metrics(differences: Sequence[Difference]) -> list[str]:
    """The metrics that `first_sentence` is about."""
    return list(dict.fromkeys(str(test["metric"]) for test in _first_tests(differences).values()))


def _reach(differences: Sequence[Difference]) -> float:
    """The difference at the edge of the picture: a little more than any of them and of their bounds."""
    names = ("difference", "ci_low", "ci_high")
    bounds = [abs(_number(test[name]) or 0.0) for test in differences for name in names]
    return max([0.05, *bounds]) * 1.05


def _number(value: object) -> float | None:
    return None if value is None else float(str(value))


def _in_prose(label: str) -> str:
    name, comma, variants = label.partition(", ")
    return f"{name} ({variants})" if comma else name  # one name in a list
