"""The result of an evaluation as Markdown tables, for documents such as model cards."""

from collections.abc import Mapping, Sequence

from spscanner_rag.evaluation.report.sections import Section, percent
from spscanner_rag.evaluation.report.table import Index, Row, index_of, sources_of
from spscanner_rag.evaluation.run import Setting
from spscanner_rag.evidence.metrics import CUTOFFS
from spscanner_rag.views.escaping import one_line


def to_markdown(
    rows: Sequence[Row],
    differences: Sequence[Mapping[str, object]],
    settings: Sequence[Setting],
    sections: Sequence[Section] = (),
) -> str:
    """Tables of recall by source, of the macro means with intervals, and of the paired tests.

    Parameters
    ----------
    rows, differences
        From `rows_of` and `differences_of`.
    settings
        In the order of the columns.
    sections
        Further tables.
    """
    index = index_of(rows)
    parts = ["Recall in percent @ " + " / ".join(map(str, CUTOFFS)) + ".\n\n"]
    parts.append(_line(["source", "questions", *(_name(setting) for setting in settings)]))
    parts.append(_line(["---"] * (len(settings) + 2)))
    for source in [*sources_of(rows), "macro", "micro"]:
        found = [[index.get((*setting, "recall", k, source)) for k in CUTOFFS] for setting in settings]
        questions = next((row["questions"] for cells in found for row in cells if row), 0)
        parts.append(_line([source, f"{questions:,}", *(_recalls(cells) for cells in found)]))
    parts.append(
        "\nMacro means in percent, with 95 % intervals; tokens of the bundled checkpoint's tokenizer.\n\n"
    )
    columns = [
        ("recall", 10),
        ("ndcg", 10),
        ("mrr", None),
        ("recall_at_tokens", 1000),
        ("recall_at_tokens", 2000),
    ]
    heads = ["recall@10", "nDCG@10", "MRR", "recall in 1,000 tokens", "recall in 2,000 tokens"]
    parts.append(_line(["retriever", *heads, "tokens of the best 5 / 50", "seconds", "gigaflops", "peak MB"]))
    parts.append(_line(["---"] * (len(heads) + 5)))
    for setting in settings:
        cells = [percent(index.get((*setting, *column, "macro"))) for column in columns]
        parts.append(_line([_name(setting), *cells, *_costs(index, setting)]))
    if differences:
        parts.append("\nPaired tests, macro means, percentage points.\n\n")
        parts.append(_line(["", "metric", "difference", "95 % interval", "p"]))
        parts.append(_line(["---"] * 5))
    for test in differences:
        pair = f"{test['first']} minus {test['second']}"
        interval = f"{_points(test['ci_low'])} to {_points(test['ci_high'])}"
        p = f"{float(str(test['p_value'])):.4f}"
        parts.append(_line([one_line(pair), str(test["metric"]), _points(test["difference"]), interval, p]))
    for section in sections:
        parts.append(f"\n{section.title}. {one_line(section.about)}\n\n")
        parts.append(_line(section.head))
        parts.append(_line(["---"] * len(section.head)))
        parts += (_line([one_line(cell) for cell in cells]) for cells in section.body)
    return "".join(parts)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _name(setting: Setting) -> str:
    return one_line(setting.label)


def _recalls(cells: Sequence[Row | None]) -> str:
    return " / ".join("-" if row is None else f"{100 * row['value']:.1f}" for row in cells)


def _costs(index: Index, setting: Setting) -> list[str]:
    def value(metric: str, k: int | None, digits: int) -> str:
        row = index.get((*setting, metric, k, "macro"))
        return "-" if row is None else f"{row['value']:,.{digits}f}"

    flops = value("gigaflops", None, 0)
    padded = value("gigaflops_padded", None, 0)
    return [
        f"{value('tokens', 5, 0)} / {value('tokens', 50, 0)}",
        value("seconds", None, 2),
        flops if flops == padded else f"{flops} ({padded} padded)",
        value("peak_megabytes", None, 0),
    ]


def _points(share: object) -> str:
    return "?" if share is None else f"{100 * float(str(share)):+.1f}"
