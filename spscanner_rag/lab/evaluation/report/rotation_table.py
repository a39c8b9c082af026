"""The effect of rotation on recall: the last tenth compared with the first, by retriever."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from spscanner_rag.lab.evaluation.records import Record
from spscanner_rag.lab.evaluation.report.rows import Row, finder, paired_samples, row_of, sources_of
from spscanner_rag.lab.evaluation.report.tables import Table, percent, shown
from spscanner_rag.lab.evaluation.rotation import LAYOUTS
from spscanner_rag.lab.evaluation.settings import Setting
from spscanner_rag.lab.evaluation.statistics import Average, Estimate, paired_ratio
from spscanner_rag.lab.evidence.sampling import Asked

METRIC = "recall@10"
RATIO = "recall_last_over_first"
LEFT_OUT = "left_out"


def rotation_rows(
    records: Sequence[Record],
    settings: Sequence[Setting],
    asked: Mapping[str, Sequence[Asked]],
    kept: Mapping[str, Sequence[Asked]],
    seed: int = 0,
) -> list[Row]:
    """The ratios of recall@10, and the shares of the questions left out.

    For each plain setting there are "recall_last_over_first" for each source, "macro" and "micro", except where
    recall in the first tenth is 0; then "left_out" for each source and "micro". ``asked`` and ``kept`` are the
    questions by source before and after `rotatable`; the bootstrap uses ``seed``.
    """
    rows: list[Row] = []
    for setting in settings:
        rows += _ratios(records, setting, seed)
        left = {**kept, "micro": list(chain(*kept.values()))}
        for source, pairs in {**asked, "micro": list(chain(*asked.values()))}.items():
            left_out = 1 - len(left.get(source, ())) / len(pairs)
            documents = len({(document.source, document.doc_id) for document, _ in pairs})
            share = Estimate(left_out, None, None, len(pairs), documents)
            splits = (document.split for document, _ in pairs)
            rows.append(row_of(setting, source, splits, LEFT_OUT, None, share))
    return rows


def rotation_table(rows: Sequence[Row], settings: Sequence[Setting]) -> Table:
    """The table of a result, from the rows of `rows_of` and `rotation_rows`, for the plain settings."""
    find = finder(rows)
    body = []
    for source in [*sorted(sources_of(rows)), "macro", "micro"]:
        for setting in settings:
            recalls = [find(setting.varied(variant), "recall", 10, source) for variant in LAYOUTS]
            questions = f"{recalls[0]['questions'] if recalls[0] else 0:,}"
            left_out = find(setting, LEFT_OUT, None, "micro" if source == "macro" else source)
            if left_out:
                questions += f" ({round(left_out['value'] * left_out['questions']):,})"
            ratio = shown(find(setting, RATIO, 10, source))
            body.append([source, setting.label, questions, *map(percent, recalls), ratio])
    return Table(
        "Evidence in the first and in the last tenth",
        "Every question on its document twice, rotated at sentence ends so that all of its evidence stands "
        "once in the first and once in the last tenth. Recall@10 and last / first (with its 95 % interval) "
        "in percent; questions whose evidence spreads over more than a tenth are left out.",
        ["source", "retriever", "asked (left out)", *LAYOUTS, "last / first"],
        body,
    )


def _ratios(records: Sequence[Record], setting: Setting, seed: int) -> Iterator[Row]:
    tenths = [setting.varied(variant) for variant in LAYOUTS]
    first, last = paired_samples(records, tenths[0], tenths[1], METRIC)
    splits: dict[str, set[str]] = {}
    for record in records:
        splits.setdefault(record.source, set()).add(record.split)
    parts: list[tuple[str, Average, list[str]]] = [(source, "macro", [source]) for source in first]
    if first:
        parts += [("macro", "macro", list(first)), ("micro", "micro", list(first))]
    for name, average, sources in parts:
        below, above = ({source: samples[source] for source in sources} for samples in (first, last))
        found = paired_ratio(below, above, average, seed=seed)
        if found is not None:
            yield row_of(setting, name, chain(*(splits[source] for source in sources)), RATIO, 10, found)
