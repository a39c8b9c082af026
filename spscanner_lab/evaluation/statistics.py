"""The rows of a result, from the records of a run: means with bootstrap intervals, and paired tests.

Questions on one document are not independent: a document that suits a retriever lifts
the scores of all its questions. Intervals are therefore percentiles of the means of
resampled documents: a source's documents are drawn with replacement, each with all of
its questions. Sources are fixed and never resampled. If a source has a single document,
its questions are resampled instead, and the interval says nothing about other
documents; if every source has a single question, there is no interval.
"""

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Literal, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spscanner_lab.evaluation.records import Record
from spscanner_rag.baselines.settings import Setting

RESAMPLES, FLIPS = 2_000, 10_000
LEVEL = 0.95

TESTED = ("recall@10", "ndcg@10"), ("recall_at_tokens@1000", "recall_at_tokens@2000")
"""Metrics of paired tests within one unit, and across units, where ten chunks are
far more than ten sentences."""

LENGTH_EDGES = (0, 10_000, 20_000, 40_000, 80_000, 160_000)
"""Where the bins of document length begin, in characters; the last bin has no end
(the paper's Figure 3)."""

_BLOCK = 1 << 20  # random numbers drawn at a time, to bound memory

Average = Literal["macro", "micro"]
AVERAGES: tuple[Average, ...] = ("macro", "micro")


class Sample:
    """A finite value for each question of a source, (questions,), and the id of the question's document."""

    def __init__(self, values: ArrayLike, documents: Sequence[str]) -> None:
        self.values, self.documents = np.array(values, np.float64), tuple(documents)
        self.questions = len(self.documents)

    @cached_property
    def clusters(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Sums of the values and counts of questions, by document, or by question if there is one document."""
        numbers = {
            name: number for number, name in enumerate(sorted(set(self.documents)))
        }
        places = np.array([numbers[name] for name in self.documents])
        # each document's values are added in ascending order, so that the order of
        # questions changes no digit
        order = np.lexsort((self.values, places))
        counts = np.bincount(places) if places.any() else np.ones(len(places), np.int64)
        return np.add.reduceat(self.values[order], np.cumsum(counts) - counts), counts


class Estimate(TypedDict):
    """A mean, its interval (None for a single question), and the numbers of questions and documents."""

    value: float
    ci_low: float | None
    ci_high: float | None
    questions: int
    documents: int


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
    """The records of each setting by source, sorted by key.

    Settings without records are left out.
    """
    found: dict[tuple[str, str], dict[str, list[Record]]] = {
        setting.key: {} for setting in settings
    }
    for _, record in sorted({record.key: record for record in records}.items()):
        if record.setting_key in found:
            found[record.setting_key].setdefault(record.source, []).append(record)
    return {setting: sources for setting in settings if (sources := found[setting.key])}


def rows_of(
    records: Iterable[Record], settings: Sequence[Setting], seed: int = 0
) -> list[Row]:
    """All rows of a result, from the records of a run in any order.

    The bootstrap uses ``seed``.

    For each of the ``settings``, in this order, and each metric come the sources in
    alphabetical order, then "macro" and "micro", over the questions that have the
    metric. ``k`` is the number after the last "@" of a metric's name: the cut-off of
    "recall", "best_recall", "precision", "ndcg", "success", "mrr" and "tokens"; the
    budget of "recall_at_tokens"; the first length of "recall_by_length" (recall@10);
    the tenth of the document, 1 to 10, of "recall_by_position@k". "tokens", "seconds"
    (per question), "peak_megabytes" (of the process), "documents_read" and
    "tokens_read" (for a question asked of a corpus) are not shares.
    """
    rows: list[Row] = []
    for setting, sources in by_setting(records, settings).items():
        splits = {
            source: {record.split for record in group}
            for source, group in sources.items()
        }
        splits |= dict.fromkeys(AVERAGES, set().union(*splits.values()))
        for name in _names(sources):
            samples = _samples(sources, name)
            found = {
                source: estimate({"": sample}, seed=seed)
                for source, sample in samples.items()
            }
            found |= {
                average: estimate(samples, average, seed=seed) for average in AVERAGES
            }
            metric, k = _metric(name)
            for source, own in found.items():
                rows.append(
                    {
                        "source": source,
                        "split": "+".join(sorted(splits[source] - {""})),
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
    tested: tuple[Sequence[str], Sequence[str]] = TESTED,
) -> list[Difference]:
    """Paired tests of pairs of settings in each metric, on the questions for which both settings have it."""
    records = list(records)
    found: list[Difference] = []
    for first, second in pairs:
        for metric in tested[second.unit != first.unit]:
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
    grouped = by_setting(
        (record for record in records if metric in record.metrics), [first, second]
    )
    both = [
        {r.key[2:]: r for own in grouped.get(s, {}).values() for r in own}
        for s in (first, second)
    ]
    shared = [key for key in both[0] if key in both[1]]
    by_source: dict[str, list[tuple[str, ...]]] = {}
    for key in shared:
        by_source.setdefault(key[0], []).append(key)
    return [
        _samples(
            {source: [own[key] for key in keys] for source, keys in by_source.items()},
            metric,
        )
        for own in both
    ]


def _samples(sources: Mapping[str, Sequence[Record]], name: str) -> dict[str, Sample]:
    """The values of a metric by source, for the sources with a record that has it."""
    found = {
        s: [record for record in group if name in record.metrics]
        for s, group in sources.items()
    }
    return {
        s: Sample([r.metrics[name] for r in own], [r.doc_id for r in own])
        for s, own in found.items()
        if own
    }


def _metric(name: str) -> tuple[str, int | None]:
    """A metric and its k, from a name such as "recall@10" or "seconds"."""
    metric, _, k = name.rpartition("@")
    return (metric, int(k)) if metric else (name, None)


def _names(sources: Mapping[str, Sequence[Record]]) -> list[str]:
    """The metrics of these records; those of one name are together, with ascending k."""
    names = dict.fromkeys(
        name
        for group in sources.values()
        for record in group
        for name in record.metrics
    )
    order = {
        metric: place
        for place, metric in enumerate(
            dict.fromkeys(_metric(name)[0] for name in names)
        )
    }
    return sorted(
        names, key=lambda name: (order[_metric(name)[0]], _metric(name)[1] or 0)
    )


def length_bin(characters: int) -> int:
    """The start of the bin that a document's length falls into."""
    return LENGTH_EDGES[bisect_right(LENGTH_EDGES, characters) - 1]


def estimate(
    samples: Mapping[str, Sample], average: Average = "macro", *, seed: int = 0
) -> Estimate:
    """The mean of the sources' means ("macro"), or of all questions ("micro", the paper's average)."""
    value = sum(share * float(sums.sum()) for share, sums in _shares(samples, average))
    questions = sum(sample.questions for sample in samples.values())
    documents = sum(len(set(sample.documents)) for sample in samples.values())
    low = high = None
    if questions > len(samples):
        means = _resampled_means(samples, average, seed)
        low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
    return Estimate(
        value=value, ci_low=low, ci_high=high, questions=questions, documents=documents
    )


def paired_test(
    first: Mapping[str, Sample], second: Mapping[str, Sample], *, seed: int = 0
) -> tuple[Estimate, float]:
    """Compare the macro means of two retrievers on the same questions, in the same order, by a permutation test.

    Returns the first retriever's mean minus the second's, and the two-sided p value of
    this difference.

    If neither retriever were better, their results on any document could be swapped.
    The test swaps them on randomly chosen documents and counts how often the difference
    of means is at least as large as the one found, in either direction. With at most 13
    documents it tries all ways to swap.
    """
    differences = {
        name: Sample(sample.values - second[name].values, sample.documents)
        for name, sample in first.items()
    }
    difference = estimate(differences, seed=seed)
    parts = np.concatenate(
        [share * sums for share, sums in _shares(differences, "macro")]
    )
    return difference, sign_flip_p(parts, FLIPS, seed)


def _shares(
    samples: Mapping[str, Sample], average: Average
) -> Iterator[tuple[float, NDArray[np.float64]]]:
    """For each source, the weight of one question and the sums of the values by document."""
    questions = sum(sample.questions for sample in samples.values())
    for _, sample in sorted(samples.items()):
        share = (
            1 / questions
            if average == "micro"
            else 1 / (sample.questions * len(samples))
        )
        yield share, sample.clusters[0]


def _resampled_means(
    samples: Mapping[str, Sample], average: Average, seed: int
) -> NDArray[np.float64]:
    """The means of resampled documents: (resamples,).

    A source's random stream depends on its name, so other sources do not change its
    resamples.
    """
    totals, questions, means = np.zeros((3, RESAMPLES))
    for name, sample in sorted(samples.items()):
        sums, counts = sample.clusters
        stream = int.from_bytes(
            hashlib.sha256(name.encode("utf-8", "replace")).digest()[:8], "big"
        )
        random = np.random.default_rng([seed, stream])
        drawn = np.empty((2, RESAMPLES))
        for start, stop in _blocks(RESAMPLES, len(sums)):
            picks = random.integers(len(sums), size=(stop - start, len(sums)))
            drawn[:, start:stop] = sums[picks].sum(axis=1), counts[picks].sum(axis=1)
        totals, questions, means = (
            totals + drawn[0],
            questions + drawn[1],
            means + drawn[0] / drawn[1],
        )
    return means / len(samples) if average == "macro" else totals / questions


def sign_flip_p(parts: NDArray[np.float64], flips: int, seed: int) -> float:
    """Two-sided p value of the sum of ``parts``, (documents,), under random signs.

    Exact up to ``flips`` ways.
    """
    # a flip whose sum differs only by rounding is as extreme as the sum found
    found = abs(float(parts.sum())) - 1e-12 * float(np.abs(parts).sum())
    exact = len(parts) < 63 and 2 ** len(parts) <= flips
    tries = 2 ** len(parts) if exact else flips
    random = np.random.default_rng(seed)
    extreme = 0
    for start, stop in _blocks(tries, len(parts)):
        if exact:
            flipped = (np.arange(start, stop)[:, None] >> np.arange(len(parts))) & 1
        else:
            flipped = random.integers(2, size=(stop - start, len(parts)))
        extreme += int((np.abs((1 - 2 * flipped) @ parts) >= found).sum())
    return extreme / tries if exact else (extreme + 1) / (tries + 1)


def _blocks(rows: int, columns: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows that each hold a bounded number of values."""
    step = max(1, _BLOCK // columns)
    for start in range(0, rows, step):
        yield start, min(start + step, rows)
