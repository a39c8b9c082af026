"""The paired differences of a result: as its first sentence, and as a picture."""

from collections.abc import Mapping, Sequence

from spscanner_rag.lab.evaluation.report.plots import Look
from spscanner_rag.text.escaping import escaped_line

CHANCE = 0.05
"""A difference with a smaller p is called more than chance."""

_NAMES = {
    "recall@10": "recall@10",
    "ndcg@10": "nDCG@10",
    "recall_at_tokens@1000": "recall in 1,000 tokens",
    "recall_at_tokens@2000": "recall in 2,000 tokens",
    "document_mrr": "MRR of the document",
}

Difference = Mapping[str, object]
"""A row of ``differences.json``."""


def first_sentence(differences: Sequence[Difference], labels: Mapping[str, str]) -> str:
    """Who is better, and whether that is more than chance: by the first metric of each pair.

    ``labels`` has the short label of each setting by its whole one.
    """
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
        f"{name} is {kind} than {_listed(groups[kind])}, by more than chance."
        for kind in ("better", "worse")
        if groups[kind]
    ]
    if groups["even"]:
        opening = "Between" if sentences else "No clear winner: between"
        sentences.append(f"{opening} {name} and {_listed(groups['even'])}, the difference may be chance.")
    return " ".join(sentences)


def measured_by(differences: Sequence[Difference]) -> str:
    """The metrics that `first_sentence` is about."""
    metrics = dict.fromkeys(str(test["metric"]) for test in _first_tests(differences).values())
    return f"Measured by {_listed([_NAMES.get(metric, metric) for metric in metrics])}. " if metrics else ""


def _first_tests(differences: Sequence[Difference]) -> dict[str, Difference]:
    """The first test of each retriever against the first one of all."""
    found: dict[str, Difference] = {}
    for test in differences:
        if test["first"] == differences[0]["first"]:
            found.setdefault(str(test["second"]), test)
    return found


def picture(differences: Sequence[Difference], looks: Sequence[Look]) -> str:
    """A row for each pair and metric: the difference with its interval, left or right of zero."""
    by_name = {look.name: look for look in looks}
    bounds = [
        abs(value)
        for test in differences
        for name in ("difference", "ci_low", "ci_high")
        if (value := _number(test[name])) is not None
    ]
    reach = max([0.05, *bounds]) * 1.05
    rows = [_row(test, by_name, reach) for test in differences]
    first = escaped_line(str(differences[0]["first"]))
    return (
        '<figure class="differences"><div class="scale"><span></span>'
        f"<span>← the other is better</span><span>0</span><span>{first} is better →</span></div>\n"
        f"{''.join(rows)}</figure>\n"
    )


def _row(test: Difference, looks: Mapping[str, Look], reach: float) -> str:
    first, second = (looks.get(str(test[name])) for name in ("first", "second"))
    one, other = (
        look.label if look else str(test[name]) for look, name in ((first, "first"), (second, "second"))
    )
    colour = second.colour if second else "c1"
    value, low, high, p = (_number(test[name]) for name in ("difference", "ci_low", "ci_high", "p_value"))
    sure = p is not None and p < CHANCE
    marks = []
    if low is not None and high is not None:
        marks.append(
            f'<line class="interval {colour}" x1="{_x(low, reach):.1f}" x2="{_x(high, reach):.1f}" '
            'y1="12" y2="12"/>'
        )
    if value is not None:
        hollow = "" if sure else " hollow"
        marks.append(f'<circle class="point {colour}{hollow}" cx="{_x(value, reach):.1f}" cy="12" r="5"/>')
    numbers = "?" if value is None else f"{100 * value:+.1f}"
    if low is not None and high is not None:
        numbers += f" ({100 * low:+.1f} to {100 * high:+.1f})"
    metric = _NAMES.get(str(test["metric"]), str(test["metric"]))
    doubt = "too few to be sure" if low and high and low * high > 0 else "may be chance"
    chance = "" if p is None else f", p = {p:.3f}{'' if sure else f', {doubt}'}"
    return (
        f'<div class="pair"><span class="what"><b>{escaped_line(one)}</b> minus <b>{escaped_line(other)}</b>'
        f"<small>{escaped_line(metric)}</small></span>"
        f'<svg viewBox="0 0 400 24" aria-hidden="true">'
        f'<line class="zero" x1="200" y1="-16" x2="200" y2="40"/>{"".join(marks)}</svg>'
        f'<span class="numbers">{numbers}{chance}</span></div>\n'
    )


def _x(value: float, reach: float) -> float:
    return 200 + 190 * value / reach


def _number(value: object) -> float | None:
    return None if value is None else float(str(value))


def _in_prose(label: str) -> str:
    return label.replace(", ", " ")  # "bm25 chunks" is one name in a list


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
