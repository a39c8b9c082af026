"""The rows and paired tests of a result, from the records of a run."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import TypedDict

from spscanner_lab.evaluation.records import Record
from spscanner_lab.evaluation.statistics import (
    AVERAGES,
    Estimate,
    Sample,
    estimate,
    paired_test,
)
from spscanner_rag.baselines.settings import Setting

TESTED_WITHIN_A_UNIT = ("recall@10", "ndcg@10")
TESTED_ACROSS_UNITS = ("recall_at_tokens@1000", "recall_at_tokens@2000")
TESTED = (TESTED_WITHIN_A_UNIT, TESTED_ACROSS_UNITS)
"""Metrics of paired tests within one unit, and across units, where ten chunks are
far more than ten sentences."""

LENGTH_EDGES = (0, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000)
"""Where the bins of document length begin, in tokens; the last bin has no end.

They are those of the paper's Figure 3: 1 to 8k, 8k to 16k, and so on."""


class ResultRow(Estimate):
    """One number of a result, as in ``results.json``."""

    source: str  # or "macro" (mean of the sources), "micro" (mean of all questions)
    split: str
    retriever: str  # the setting's name
    unit: str
    metric: str
    k: int | None


class Difference(TypedDict):
    """A paired test of two settings, as in ``differences.json``.

    ``first`` and ``second`` are their labels, and ``difference`` is the first minus the
    second.
    """

    first: str
    second: str
    metric: str
    average: str
    difference: float
    ci_low: float | None
    ci_high: float | None
    p_value: float
    questions: int


def by_setting(
    records: Iterable[Record], settings: Sequence[Setting]
) -> dict[Setting, dict[str, list[Record]]]:
    """The records of each setting by source, sorted by key.

    Settings without records are left out.
    """
    sources_by_key: dict[tuple[str, str], dict[str, list[Record]]] = {}
    for setting in settings:
        sources_by_key[setting.key] = {}
    record_by_key = {}
    for record in records:
        record_by_key[record.key] = record
    for _, record in sorted(record_by_key.items()):
        sources = sources_by_key.get(record.setting_key)
        if sources is not None:
            sources.setdefault(record.source, []).append(record)
    present: dict[Setting, dict[str, list[Record]]] = {}
    for setting in settings:
        if sources_by_key[setting.key]:
            present[setting] = sources_by_key[setting.key]
    return present


def rows_of(
    records: Iterable[Record], settings: Sequence[Setting], seed: int = 0
) -> list[ResultRow]:
    """All rows of a result, from the records of a run in any order.

    The bootstrap uses ``seed``.

    For each of the ``settings``, in this order, and each metric come the sources in
    alphabetical order, then "macro" and "micro", over the questions that have the
    metric. ``k`` is the number after the last "@" of a metric's name: the cut-off of
    "recall", "best_recall", "precision", "ndcg", "success", "mrr" and "tokens"; the
    budget of "recall_at_tokens"; the first length of "recall_by_length" (recall@10);
    the tenth of the document, 1 to 10, of "recall_by_position@k". "tokens",
    "seconds", "seconds_computing" and "tflops" (per question), "peak_megabytes" (of the
    process), "documents_read" and "tokens_read" (for a question asked of a corpus) are
    not shares.
    """
    rows: list[ResultRow] = []
    for setting, sources in by_setting(records, settings).items():
        splits = _splits(sources)
        for name in _metric_names(sources):
            metric, k = _metric(name)
            for source, value in _estimates(sources, name, seed).items():
                rows.append(
                    {
                        "source": source,
                        "split": splits[source],
                        "retriever": setting.name,
                        "unit": setting.unit,
                        "metric": metric,
                        "k": k,
                        **value,
                    }
                )
    return rows


def _splits(sources: Mapping[str, Sequence[Record]]) -> dict[str, str]:
    """The names of the splits of each source and, for the averages, of all."""
    names_by_source: dict[str, set[str]] = {}
    names_of_all: set[str] = set()
    for source, records in sources.items():
        names_by_source[source] = {record.split for record in records}
        names_of_all |= names_by_source[source]
    for average in AVERAGES:
        names_by_source[average] = names_of_all
    splits = {}
    for source, names in names_by_source.items():
        splits[source] = "+".join(sorted(names - {""}))
    return splits


def _estimates(
    sources: Mapping[str, Sequence[Record]], name: str, seed: int
) -> dict[str, Estimate]:
    """The mean of a metric on each source, then the averages over sources."""
    samples = _samples(sources, name)
    estimates = {}
    for source, sample in samples.items():
        estimates[source] = estimate({source: sample}, seed=seed)
    for average in AVERAGES:
        estimates[average] = estimate(samples, average, seed=seed)
    return estimates


def differences_of(
    records: Iterable[Record],
    pairs: Iterable[tuple[Setting, Setting]],
    seed: int = 0,
    tested: tuple[Sequence[str], Sequence[str]] = TESTED,
) -> list[Difference]:
    """Paired tests of pairs of settings in each metric.

    They are on the questions for which both settings have the metric.
    """
    records = list(records)
    differences: list[Difference] = []
    for first, second in pairs:
        for metric in tested[second.unit != first.unit]:
            samples = _paired_samples(records, first, second, metric)
            if not samples[0]:
                continue
            difference, p_value = paired_test(*samples, seed=seed)
            differences.append(
                Difference(
                    first=first.label,
                    second=second.label,
                    metric=metric,
                    average="macro",
                    difference=difference["value"],
                    ci_low=difference["ci_low"],
                    ci_high=difference["ci_high"],
                    p_value=p_value,
                    questions=difference["questions"],
                )
            )
    return differences


def _paired_samples(
    records: Iterable[Record], first: Setting, second: Setting, metric: str
) -> tuple[dict[str, Sample], dict[str, Sample]]:
    """A metric of two settings by source, on the same questions in the same order."""
    measured = _with_metric(records, metric)
    sources_by_setting = by_setting(measured, [first, second])
    first_records = _by_question(sources_by_setting.get(first, {}))
    second_records = _by_question(sources_by_setting.get(second, {}))
    keys_by_source: dict[str, list[tuple[str, ...]]] = {}
    for key in first_records:
        if key in second_records:
            keys_by_source.setdefault(key[0], []).append(key)
    first_sources = {}
    second_sources = {}
    for source, keys in keys_by_source.items():
        first_sources[source] = [first_records[key] for key in keys]
        second_sources[source] = [second_records[key] for key in keys]
    return _samples(first_sources, metric), _samples(second_sources, metric)


def _by_question(
    sources: Mapping[str, Sequence[Record]],
) -> dict[tuple[str, ...], Record]:
    """Records by source, document and question."""
    record_by_question = {}
    for records in sources.values():
        for record in records:
            record_by_question[record.key[2:]] = record
    return record_by_question


def _samples(sources: Mapping[str, Sequence[Record]], name: str) -> dict[str, Sample]:
    """The values of a metric by source, for the sources with a record that has it."""
    samples = {}
    for source, records in sources.items():
        measured = _with_metric(records, name)
        if measured:
            values = [record.metrics[name] for record in measured]
            doc_ids = [record.doc_id for record in measured]
            samples[source] = Sample(values, doc_ids)
    return samples


def _with_metric(records: Iterable[Record], name: str) -> list[Record]:
    return [record for record in records if name in record.metrics]


def _metric(name: str) -> tuple[str, int | None]:
    """A metric and its k, from a name such as "recall@10" or "seconds"."""
    metric, _, k = name.rpartition("@")
    return (metric, int(k)) if metric else (name, None)


def _metric_names(sources: Mapping[str, Sequence[Record]]) -> list[str]:
    """The metrics of these records.

    Those of one name are together, by ascending k.
    """
    names: dict[str, None] = {}
    for records in sources.values():
        for record in records:
            names |= dict.fromkeys(record.metrics)
    place_by_metric: dict[str, int] = {}
    for name in names:
        place_by_metric.setdefault(_metric(name)[0], len(place_by_metric))

    def place(name: str) -> tuple[int, int]:
        metric, k = _metric(name)
        return place_by_metric[metric], k or 0

    return sorted(names, key=place)


def length_bin(tokens: int) -> int:
    """The start of the bin that a document's length falls into.

    Examples
    --------
    >>> from spscanner_lab.evaluation.rows import length_bin
    >>> length_bin(35_000)
    32000
    """
    return LENGTH_EDGES[bisect_right(LENGTH_EDGES, tokens) - 1]


def length_name(edge: int) -> str:
    """A bin of document length in words, by its start.

    Examples
    --------
    >>> from spscanner_lab.evaluation.rows import length_name
    >>> length_name(0), length_name(256_000)
    ('1-8k', '256k+')
    """
    place = LENGTH_EDGES.index(edge)
    if place + 1 == len(LENGTH_EDGES):
        return f"{edge // 1000}k+"
    start = f"{edge // 1000}" if edge else "1"
    return f"{start}-{LENGTH_EDGES[place + 1] // 1000}k"
