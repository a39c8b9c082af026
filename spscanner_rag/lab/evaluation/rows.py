"""The rows of a result, from the records of a run: means over sources and questions, intervals, paired tests."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypedDict

from spscanner_rag.lab.evaluation.records import Record
from spscanner_rag.lab.evaluation.settings import Setting
from spscanner_rag.lab.evaluation.statistics import AVERAGES, Estimate, Sample, estimate, paired_test

TESTED = ("recall@10", "ndcg@10")  # metrics of the paired tests of retrievers of the same unit

TESTED_ACROSS = ("recall_at_tokens@1000", "recall_at_tokens@2000")
"""Metrics of the paired tests across units: ten chunks are many times ten sentences."""

_COSTS = "seconds", "gigaflops", "peak_megabytes", "documents_read", "tokens_read", "index_megabytes"

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


Values = dict[tuple[str, int | None], float | None]  # of a record, by metric and k


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

    Each of the ``settings``, in this order, has the sources in alphabetical order, then "macro" and "micro". ``k``
    is the cut-off of "recall", "best_recall", "precision", "ndcg", "success", "mrr" and "tokens"; the budget of
    "recall_at_tokens"; the first length of "recall_by_length" (recall@10); the tenth of the document, 1 to 10, of
    "recall_by_position@k". "tokens", "seconds" (per question), "gigaflops" (of the first question on a
    document), "peak_megabytes" (of the process), "documents_read" and "tokens_read" (for a question
    that is asked of a corpus) and "index_megabytes" are not shares.
    """
    rows: list[Row] = []
    for setting, sources in by_setting(records, settings).items():
        splits = {source: {record.split for record in group} for source, group in sources.items()}
        every = set().union(*splits.values())
        for metric, k, samples in _measures(sources):
            found = [
                (source, splits[source], estimate({"": sample}, seed=seed))
                for source, sample in samples.items()
            ]
            for average in AVERAGES:
                found.append((average, every, estimate(samples, average, seed=seed)))
            for source, own_splits, own in found:
                rows.append(
                    {
                        "source": source,
                        "split": "+".join(sorted(own_splits - {""})),
                        "retriever": setting.name,
                        "unit": setting.unit,
                        "metric": metric,
                        "k": k,
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
    """Paired tests of pairs of settings, on the questions that both were asked, of these metrics."""
    records = list(records)
    found: list[Difference] = []
    for first, second in pairs:
        for metric in same_unit if second.unit == first.unit else across:
            samples = paired_samples(records, first, second, metric)
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


def paired_samples(
    records: Iterable[Record], first: Setting, second: Setting, metric: str
) -> tuple[dict[str, Sample], dict[str, Sample]]:
    """A metric of two settings by source, on the questions that both were asked, in the same order."""
    grouped = by_setting(records, [first, second])
    both = [grouped.get(setting, {}) for setting in (first, second)]
    asked = [{record.key[2:] for group in sources.values() for record in group} for sources in both]
    shared = asked[0] & asked[1]

    def samples(sources: Mapping[str, Sequence[Record]]) -> dict[str, Sample]:
        found = {}
        for source, group in sources.items():
            pairs = [(r.metrics.get(metric, 0.0), r.doc_id) for r in group if r.key[2:] in shared]
            if pairs:
                found[source] = Sample.of(pairs)
        return found

    return samples(both[0]), samples(both[1])


def _measures(sources: Mapping[str, Sequence[Record]]) -> Iterator[tuple[str, int | None, dict[str, Sample]]]:
    """Every metric with its k, and a sample of it for each source that has one."""
    records = [record for group in sources.values() for record in group]
    names = dict.fromkeys(name for record in records for name in record.metrics)
    costs = [name for name in _COSTS if all(getattr(record, name) is not None for record in records)]

    def plain(record: Record) -> Values:
        # a metric that is not defined for a question (no chunk holds half of its evidence) counts as 0
        found: Values = {_name_and_k(name): record.metrics.get(name, 0.0) for name in names}
        tokens = {("tokens", int(k)): number for k, number in record.tokens.items()}
        return found | tokens | {(name, None): getattr(record, name) for name in costs}

    def in_bins(record: Record) -> Values:
        found: Values = {
            ("recall_by_length", length_bin(record.characters)): record.metrics.get("recall@10", 0.0)
        }
        for k, places in record.positions.items():  # it counts in every tenth that has any of its evidence
            found |= {(f"recall_by_position@{k}", part): value for part, value in enumerate(places, 1)}
        return found

    for values_of in (plain, in_bins):
        found: dict[tuple[str, int | None], dict[str, list[tuple[float, str]]]] = {}
        for source, group in sources.items():
            for record in group:
                for key, value in values_of(record).items():
                    if value is not None:
                        found.setdefault(key, {}).setdefault(source, []).append((value, record.doc_id))
        for metric, k in (
            found if values_of is plain else sorted(found, key=lambda key: (key[0], key[1] or 0))
        ):
            samples = {source: Sample.of(pairs) for source, pairs in found[metric, k].items()}
            yield metric, k, samples


def _name_and_k(name: str) -> tuple[str, int | None]:
    metric, _, k = name.partition("@")
    return metric, int(k) if k else None


def length_bin(characters: int) -> int:
    """Where the bin of a document's length begins."""
    return LENGTH_EDGES[bisect_right(LENGTH_EDGES, characters) - 1]
