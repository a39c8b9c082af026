"""The rows of a result, from the records of a run: means over sources and questions, intervals, paired tests."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypedDict

from spscanner_rag.lab.evaluation.records import Record
from spscanner_rag.lab.evaluation.settings import Setting
from spscanner_rag.lab.evaluation.statistics import AVERAGES, Sample, estimate, paired_test

TESTED = ("recall@10", "ndcg@10")  # metrics of the paired tests of retrievers of the same unit

TESTED_ACROSS = ("recall_at_tokens@1000", "recall_at_tokens@2000")
"""Metrics of the paired tests across units: ten chunks are many times ten sentences."""

_COSTS = "seconds", "gigaflops", "peak_megabytes", "documents_read", "tokens_read", "index_megabytes"

LENGTH_EDGES = (0, 10_000, 20_000, 40_000, 80_000, 160_000)
"""Where the bins of document length begin, in characters; the last has no end (the paper's Figure 3)."""


class Row(TypedDict):
    """One number of a result, as in ``results.json``, with its numbers of questions and documents."""

    source: str  # or "macro" (mean of the sources), "micro" (mean of all questions)
    split: str
    retriever: str  # the setting's name
    unit: str
    metric: str
    k: int | None
    value: float
    ci_low: float | None
    ci_high: float | None
    questions: int
    documents: int


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


Value = Callable[[Record], Any]  # a number of a record

Find = Callable[[Setting, str, int | None, str], Row | None]  # the row of a setting, metric, k and source


def finder(rows: Iterable[Row]) -> Find:
    """A function that looks rows up."""
    found = {(r["retriever"], r["unit"], r["metric"], r["k"], r["source"]): r for r in rows}
    return lambda setting, metric, k, source: found.get((*setting.key, metric, k, source))


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
                    Row(
                        source=source,
                        split="+".join(sorted(own_splits - {""})),
                        retriever=setting.name,
                        unit=setting.unit,
                        metric=metric,
                        k=k,
                        value=own.value,
                        ci_low=own.low,
                        ci_high=own.high,
                        questions=own.questions,
                        documents=own.documents,
                    )
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
            result = paired_test(*samples, "macro", seed=seed)
            found.append(
                Difference(
                    first=first.label,
                    second=second.label,
                    metric=metric,
                    average="macro",
                    difference=result.difference.value,
                    ci_low=result.difference.low,
                    ci_high=result.difference.high,
                    p_value=result.p_value,
                    questions=result.difference.questions,
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
    one, other = (
        {
            source: [record for record in group if record.key[2:] in shared]
            for source, group in sources.items()
        }
        for sources in both
    )
    return _samples(one, metric), _samples(other, metric)


def _measures(sources: Mapping[str, Sequence[Record]]) -> Iterator[tuple[str, int | None, dict[str, Sample]]]:
    """Every metric with its k, and a sample of it for each source that has one."""
    records = [record for group in sources.values() for record in group]
    for name in dict.fromkeys(name for record in records for name in record.metrics):
        metric, _, k = name.partition("@")
        yield metric, int(k) if k else None, _samples(sources, name)
    for k in records[0].tokens:

        def tokens(record: Record, k: str = k) -> int:
            return record.tokens[k]

        yield "tokens", int(k), _samples_of(sources, tokens)
    for name in _COSTS:
        if all(getattr(record, name) is not None for record in records):
            yield name, None, _samples_of(sources, attrgetter(name))
    for low, samples in _by_bin(
        sources, lambda record: {length_bin(record.characters): record.metrics.get("recall@10", 0.0)}
    ):
        yield "recall_by_length", low, samples
    for k in records[0].positions:

        def places(record: Record, k: str = k) -> dict[int, float | None]:
            return dict(enumerate(record.positions[k], 1))

        # a question counts in every tenth that has any of its evidence
        for part, samples in _by_bin(sources, places):
            yield f"recall_by_position@{k}", part, samples


def length_bin(characters: int) -> int:
    """Where the bin of a document's length begins."""
    return LENGTH_EDGES[bisect_right(LENGTH_EDGES, characters) - 1]


def _by_bin(
    sources: Mapping[str, Sequence[Record]], values_of: Callable[[Record], Mapping[int, float | None]]
) -> Iterator[tuple[int, dict[str, Sample]]]:
    found: dict[int, dict[str, list[tuple[float, str]]]] = {}
    for source, records in sources.items():
        for record in records:
            for number, value in values_of(record).items():
                if value is not None:
                    own = found.setdefault(number, {}).setdefault(source, [])
                    own.append((value, record.doc_id))
    for number in sorted(found):
        yield number, {source: Sample.of(pairs) for source, pairs in found[number].items()}


def _samples(sources: Mapping[str, Sequence[Record]], metric: str) -> dict[str, Sample]:
    # a metric that is not defined for a question (no chunk holds half of its evidence) counts as 0
    return _samples_of(sources, lambda record: record.metrics.get(metric, 0.0))


def _samples_of(sources: Mapping[str, Sequence[Record]], value: Value) -> dict[str, Sample]:
    return {
        source: Sample.of([(value(record), record.doc_id) for record in records])
        for source, records in sources.items()
        if records
    }
