"""From records of single questions to the rows of a result: means over sources and questions, intervals, tests."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypedDict

import numpy as np

from spscanner_rag.evaluation.positions import length_samples, position_samples
from spscanner_rag.evaluation.records import Record
from spscanner_rag.evaluation.run import Setting
from spscanner_rag.evaluation.statistics import (
    Estimate,
    Sample,
    estimate,
    macro_estimate,
    micro_estimate,
    paired_test,
)

LENGTH_EDGES = (0, 10_000, 20_000, 40_000, 80_000, 160_000)
"""Where the bins of document length begin, in characters."""

TESTED = ("recall@10", "ndcg@10")
"""Metrics by which retrievers of the same unit are compared in pairs."""

TESTED_ACROSS = ("recall_at_tokens@1000", "recall_at_tokens@2000")
"""Those by which retrievers of different units are: ten chunks are many times ten sentences."""


class Row(TypedDict):
    """One number of a result, as ``results.json`` and the CSV have it."""

    source: str  # or "macro" (mean of the sources), "micro" (mean of all questions)
    split: str
    retriever: str
    unit: str
    metric: str
    k: int | None
    value: float
    ci_low: float | None
    ci_high: float | None
    questions: int
    documents: int


Index = Mapping[tuple[str, str, str, int | None, str], Row]
"""Rows by retriever, unit, metric, k and source."""


def index_of(rows: Sequence[Row]) -> Index:
    """Rows by what tells them apart."""
    return {(r["retriever"], r["unit"], r["metric"], r["k"], r["source"]): r for r in rows}


def sources_of(rows: Sequence[Row]) -> list[str]:
    """The sources of a result, in the order of its rows, without the means over them."""
    return list(dict.fromkeys(r["source"] for r in rows if r["source"] not in ("macro", "micro")))


def rows_of(records: Iterable[Record], settings: Sequence[Setting], seed: int = 0) -> list[Row]:
    """All rows of a result.

    Parameters
    ----------
    records
        Of a run, in any order.
    settings
        In the order of the table.
    seed
        Of the bootstrap.

    Returns
    -------
    list of Row
        By setting; of each the sources in alphabetical order, then "macro" and "micro". ``k`` is the cut-off of
        "recall", "precision", "ndcg", "success", "mrr" and "tokens"; tokens of "recall_at_tokens"; the first
        length of "recall_by_length" (recall@10); the tenth of the document, 1 to 10, of "recall_by_position@k".
        "tokens", "seconds" (per question) and "gigaflops" (of the first question on a document, without padding
        and with it) and "peak_megabytes" (of the process) are no shares.
    """
    by_setting: dict[Setting, dict[str, list[Record]]] = {setting: {} for setting in settings}
    for record in sorted(records, key=lambda record: record.key):
        setting = Setting(record.retriever, record.unit)
        if setting in by_setting:
            by_setting[setting].setdefault(record.source, []).append(record)
    rows: list[Row] = []
    for setting, sources in by_setting.items():
        if sources:
            rows += _setting_rows(setting, sources, seed)
    return rows


def differences_of(
    records: Iterable[Record],
    settings: Sequence[Setting],
    seed: int = 0,
    pairs: Sequence[tuple[Setting, Setting]] | None = None,
) -> list[dict[str, object]]:
    """The first setting against each other one, or given pairs, on the questions that both have been asked.

    Returns
    -------
    list of dict
        "first", "second", "metric", "average", "difference", "ci_low", "ci_high", "p_value", "questions".
    """
    records = list(records)
    found: list[dict[str, object]] = []
    for first, second in [(settings[0], other) for other in settings[1:]] if pairs is None else pairs:
        metrics = TESTED if second.unit == first.unit else TESTED_ACROSS
        for metric in metrics:
            samples = paired_samples(records, first, second, metric)
            if not samples[0]:
                continue
            result = paired_test(*samples, "macro", seed=seed)
            found.append(
                {
                    "first": first.label,
                    "second": second.label,
                    "metric": metric,
                    "average": "macro",
                    "difference": result.difference.value,
                    "ci_low": result.difference.low,
                    "ci_high": result.difference.high,
                    "p_value": result.p_value,
                    "questions": result.difference.questions,
                }
            )
    return found


def paired_samples(
    records: Iterable[Record], first: Setting, second: Setting, metric: str
) -> tuple[dict[str, Sample], dict[str, Sample]]:
    """A metric of two settings by source, on the questions that both have been asked, in the same order."""
    by_setting: dict[Setting, dict[tuple[str, ...], Record]] = {first: {}, second: {}}
    for record in records:
        by_setting.get(Setting(record.retriever, record.unit), {})[record.key[2:]] = record
    shared = sorted(by_setting[first].keys() & by_setting[second].keys())
    one, other = (
        _samples(_by_source(by_setting[setting][key] for key in shared), metric)
        for setting in (first, second)
    )
    return one, other


def row_of(setting: Setting, source: str, split: str, metric: str, k: int | None, found: Estimate) -> Row:
    """A row that holds an estimate."""
    return Row(
        source=source,
        split=split,
        retriever=setting.retriever,
        unit=setting.unit,
        metric=metric,
        k=k,
        value=found.value,
        ci_low=found.low,
        ci_high=found.high,
        questions=found.questions,
        documents=found.documents,
    )


def joined(splits: Iterable[str]) -> str:
    """Names of splits as one."""
    return "+".join(sorted(set(splits) - {""}))


def to_csv(rows: Sequence[Row]) -> str:
    """Rows as CSV, with a header."""
    file = io.StringIO()
    writer = csv.DictWriter(file, list(Row.__annotations__), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def _setting_rows(setting: Setting, sources: Mapping[str, Sequence[Record]], seed: int) -> Iterator[Row]:
    splits = {source: _split(records) for source, records in sources.items()}
    both = [*splits.items(), ("macro", joined(splits.values())), ("micro", joined(splits.values()))]
    for metric, k, samples in _measures(sources):
        for source, split in both:
            if source in ("macro", "micro"):
                mean = macro_estimate if source == "macro" else micro_estimate
                found = mean(samples, seed=seed)
            elif source in samples:
                found = estimate(samples[source], seed=seed)
            else:
                continue
            yield row_of(setting, source, split, metric, k, found)


def _measures(
    sources: Mapping[str, Sequence[Record]],
) -> Iterator[tuple[str, int | None, dict[str, Sample]]]:
    """Every metric with its k, and a sample of it for each source that has one."""
    records = [record for group in sources.values() for record in group]
    for name in dict.fromkeys(name for record in records for name in record.metrics):
        metric, _, k = name.partition("@")
        yield metric, int(k) if k else None, _samples(sources, name)
    for k in records[0].tokens:
        yield "tokens", int(k), _samples_of(sources, lambda record, k=k: record.tokens[k])
    yield "seconds", None, _samples_of(sources, lambda record: record.seconds)
    for name in ("gigaflops", "gigaflops_padded", "peak_megabytes"):
        if all(getattr(record, name) is not None for record in records):
            yield name, None, _samples_of(sources, lambda record, name=name: getattr(record, name))
    for low, samples in _by_length(sources).items():
        yield "recall_by_length", low, samples
    for k in records[0].positions:
        for part, samples in enumerate(_by_position(sources, k), start=1):
            if samples:
                yield f"recall_by_position@{k}", part, samples


def _samples(sources: Mapping[str, Sequence[Record]], metric: str) -> dict[str, Sample]:
    # a metric that is not defined for a question (no chunk holds half of its evidence) counts as 0
    return _samples_of(sources, lambda record: record.metrics.get(metric, 0.0))


def _samples_of(sources: Mapping[str, Sequence[Record]], value: Any) -> dict[str, Sample]:  # noqa: ANN401
    return {
        source: Sample([value(record) for record in records], [record.doc_id for record in records])
        for source, records in sources.items()
    }


def _by_length(sources: Mapping[str, Sequence[Record]]) -> dict[int, dict[str, Sample]]:
    """Samples of recall@10 by the first length of each bin."""
    found: dict[int, dict[str, Sample]] = {}
    for source, sample in _samples(sources, "recall@10").items():
        lengths = [record.characters for record in sources[source]]
        for (low, _), inside in length_samples(sample, lengths, LENGTH_EDGES).items():
            found.setdefault(low, {})[source] = inside
    return dict(sorted(found.items()))


def _by_position(sources: Mapping[str, Sequence[Record]], k: str) -> Iterator[dict[str, Sample]]:
    """Of each tenth of the document, samples of recall at k."""
    by_source = {}
    for source, records in sources.items():
        recalls = [
            np.array([np.nan if recall is None else recall for recall in record.positions[k]])
            for record in records
        ]
        by_source[source] = position_samples(recalls, [record.doc_id for record in records])
    for part in range(max(len(samples) for samples in by_source.values())):
        samples = {source: found[part] for source, found in by_source.items()}
        yield {source: sample for source, sample in samples.items() if sample is not None}


def _by_source(records: Iterable[Record]) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(record.source, []).append(record)
    return found


def _split(records: Sequence[Record]) -> str:
    return joined(record.split for record in records)
