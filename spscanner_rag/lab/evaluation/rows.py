"""The rows of a result, from the records of a run: means over sources and questions, intervals, paired tests."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import TypedDict

from spscanner_rag.lab.evaluation.records import Record
from spscanner_rag.lab.evaluation.settings import Setting
from spscanner_rag.lab.evaluation.statistics import AVERAGES, Estimate, Sample, estimate, paired_test

TESTED = ("recall@10", "ndcg@10")  # metrics of the paired tests of retrievers of the same unit

TESTED_ACROSS = ("recall_at_tokens@1000", "recall_at_tokens@2000")
"""Metrics of the paired tests across units: ten chunks are many times ten sentences."""

LENGTH_EDGES = (0, 10_000, 20_000, 40_000, 80_000, 160_000)
"""Where the bins of document length begin, in characters; the last has no end (the paper's Figure 3)."""


class Row(Estimate):
    """One number of a result, as in ``results.json``."""

    source: str  # or "macro" (mean of the sources), "micro" (mean of all questions)
    split: str
    retriever: str  # the setting's name
    unit: str
    metric: str
    k: int | None


class Difference(TypedDict):
    """A paired test of two settings, as in ``differences.json``: their labels, and the first minus the second."""

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
    """The records of each setting by source, sorted; settings without records are left out."""
    found: dict[tuple[str, str], dict[str, list[Record]]] = {setting.key: {} for setting in settings}
    for _, record in sorted({record.key: record for record in records}.items()):
        if record.setting_key in found:
            found[record.setting_key].setdefault(record.source, []).append(record)
    return {setting: sources for setting in settings if (sources := found[setting.key])}


def rows_of(records: Iterable[Record], settings: Sequence[Setting], seed: int = 0) -> list[Row]:
    """All rows of a result, from the records of a run in any order; the bootstrap uses ``seed``.

    Each of the ``settings``, in this order, has the sources in alphabetical order, then "macro" and "micro", for
    each metric, over the questions that have it. ``k`` is what is behind the last "@" of a metric's name: the
    cut-off of "recall", "best_recall", "precision", "ndcg", "success", "mrr" and "tokens"; the budget of
    "recall_at_tokens"; the first length of "recall_by_length" (recall@10); the tenth of the document, 1 to 10, of
    "recall_by_position@k". "tokens", "seconds" (per question), "peak_megabytes" (of the process),
    "documents_read" and "tokens_read" (for a question that is asked of a corpus) and "index_megabytes" are not
    shares.
    """
    rows: list[Row] = []
    for setting, sources in by_setting(records, settings).items():
        splits = {source: {record.split for record in group} for source, group in sources.items()}
        every = set().union(*splits.values())
        for name in _names(sources):
            metric, _, k = name.rpartition("@")
            samples = _samples(sources, name)
            found = [(s, splits[s], estimate({"": sample}, seed=seed)) for s, sample in samples.items()]
            found += [(average, every, estimate(samples, average, seed=seed)) for average in AVERAGES]
            for source, own_splits, own in found:
                rows.append(
                    {
                        "source": source,
                        "split": "+".join(sorted(own_splits - {""})),
                        "retriever": setting.name,
                        "unit": setting.unit,
                        "metric": metric or name,
                        "k": int(k) if metric else None,
                        **own,
                    }
                )
    return rows


def differences_of(
    records: Iterable[Record],
    pairs: Iterable[tuple[Setting, Setting]],
    seed: int = 0,
    *,
    same_unit: Sequence[str] = TESTED,
    across: Sequence[str] = TESTED_ACROSS,
) -> list[Difference]:
    """Paired tests of pairs of settings, on the questions for which both have one of these metrics."""
    records = list(records)
    found: list[Difference] = []
    for first, second in pairs:
        for metric in same_unit if second.unit == first.unit else across:
            samples = _paired_samples(records, first, second, metric)
            if not samples[0]:
                continue
            difference, p_value = paired_test(*samples, seed=seed)
            found.append(
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
    return found


def _paired_samples(
    records: Iterable[Record], first: Setting, second: Setting, metric: str
) -> list[dict[str, Sample]]:
    """A metric of two settings by source, on the same questions in the same order."""
    grouped = by_setting((record for record in records if metric in record.metrics), [first, second])
    both = [grouped.get(setting, {}) for setting in (first, second)]
    asked = [{record.key[2:] for group in sources.values() for record in group} for sources in both]
    shared = asked[0] & asked[1]
    kept = [
        {
            source: [record for record in group if record.key[2:] in shared]
            for source, group in sources.items()
        }
        for sources in both
    ]
    return [_samples(sources, metric) for sources in kept]


def _samples(sources: Mapping[str, Sequence[Record]], name: str) -> dict[str, Sample]:
    """A metric of each source that has a record of it."""
    found = {}
    for source, group in sources.items():
        pairs = [(record.metrics[name], record.doc_id) for record in group if name in record.metrics]
        if pairs:
            found[source] = Sample.of(pairs)
    return found


def _names(sources: Mapping[str, Sequence[Record]]) -> list[str]:
    """The metrics of these records, those of one name together and with ascending k."""
    names = dict.fromkeys(name for group in sources.values() for record in group for name in record.metrics)
    metrics: dict[str, list[tuple[int, str]]] = {}
    for name in names:
        metric, _, k = name.rpartition("@")
        metrics.setdefault(metric or name, []).append((int(k) if metric else 0, name))
    return [name for own in metrics.values() for _, name in sorted(own)]


def length_bin(characters: int) -> int:
    """Where the bin of a document's length begins."""
    return LENGTH_EDGES[bisect_right(LENGTH_EDGES, characters) - 1]
