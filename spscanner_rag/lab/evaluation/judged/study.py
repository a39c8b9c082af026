"""A run that ranks the documents of a judged corpus for each of its queries."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from spscanner_rag.files.json_files import append_records, complete_lines, parse_json
from spscanner_rag.lab.evaluation.corpora import SourceCorpus
from spscanner_rag.lab.evaluation.corpus_run import timed_scores
from spscanner_rag.lab.evaluation.corpus_study import CorpusAsk, CorpusStudy, check_long
from spscanner_rag.lab.evaluation.judged.beir import JudgedCorpus
from spscanner_rag.lab.evaluation.judged.trec import write_run
from spscanner_rag.lab.evaluation.records import Record, RecordFile
from spscanner_rag.lab.evaluation.report.result import Result
from spscanner_rag.lab.evaluation.report.rows import Row, differences_of, finder, rows_of
from spscanner_rag.lab.evaluation.report.tables import Table, percent, shown
from spscanner_rag.lab.evaluation.settings import Setting
from spscanner_rag.lab.evidence.metrics import ranking_metrics
from spscanner_rag.results.document_score import best_first, document_score
from spscanner_rag.scorers import Progress, Scorer
from spscanner_rag.text.token_counts import CountTokens

RANKINGS = "rankings.jsonl"
MOST_RANKED = 1000
"""Documents of a ranking that are kept for a query, as in TREC's runs."""

TESTED = ("ndcg@10", "map")
_COSTS = {"documents_read": 0, "tokens_read": 0, "seconds": 3, "index_megabytes": 2}


@dataclass(frozen=True)
class JudgedAsk:
    """One setting that ranks the documents for all queries."""

    ask: CorpusAsk
    judged: JudgedCorpus
    cutoffs: Sequence[int]

    @property
    def setting(self) -> Setting:
        """The setting that the records name."""
        return self.ask.setting

    def run(
        self,
        scorers: Mapping[Setting, Scorer],
        titles: dict[str, str],
        count_tokens: CountTokens,
        file: RecordFile,
        progress: Progress | None = None,
    ) -> None:
        """Rank for all queries without a record, then write the rankings as a run of TREC."""
        titles.update((document.text, document.title) for document in self.judged.documents)
        folder = file.path.parent
        for done, (qid, text) in enumerate(self.judged.queries.items(), 1):
            if (*self.setting.key, self.judged.name, qid, qid) not in file.records:
                ranking, record = self._ranked(scorers, qid, text, count_tokens)
                line = {"setting": self.setting.key, "query": qid, "ranking": ranking}
                append_records(folder / RANKINGS, [line])  # first: a record says that its ranking is kept
                file.add([record])
            if progress is not None:
                progress(done, len(self.judged.queries))
        found = dict(kept_rankings(folder, self.setting))
        write_run(folder / f"{_file_name(self.setting)}.trec", found, self.setting.label)

    def _ranked(
        self, scorers: Mapping[Setting, Scorer], qid: str, query: str, count_tokens: CountTokens
    ) -> tuple[list[tuple[str, float]], Record]:
        (corpus,) = self.ask.corpora
        scorer, reading = self.ask.loaded(scorers)
        units = self.ask.shelf.units(corpus, self.setting.unit)
        scored = timed_scores(self.setting, scorer, reading, self.ask.shelf, corpus, query, units.every)
        whole = [document_score(values, self.ask.aggregation) for values in scored.logits]
        ranking = [
            (corpus.documents[scored.read[number]].doc_id, score)
            for number, score in best_first(whole)
            if np.isfinite(score)  # a document without units is not ranked
        ][:MOST_RANKED]
        grades = self.judged.qrels[qid]
        record = Record(
            *self.setting.key,
            source=self.judged.name,
            split="",
            doc_id=qid,
            qid=qid,
            characters=sum(len(corpus.documents[number].text) for number in scored.read),
            metrics=document_ranking_metrics([name for name, _ in ranking], grades, self.cutoffs),
            seconds=scored.seconds,
            documents_read=len(scored.read),
            tokens_read=int(units.pool(scored.read, count_tokens).tokens.sum()),
            index_megabytes=scored.index_megabytes,
        )
        return ranking, record


@dataclass(frozen=True, kw_only=True)
class JudgedStudy(CorpusStudy):
    """Every setting ranks the documents of a judged corpus for all of its queries."""

    judged: JudgedCorpus

    @property
    def arguments(self) -> dict[str, object]:
        """What must not change before the run resumes."""
        told = json.dumps([self.judged.queries, self.judged.qrels], sort_keys=True)
        return super().arguments | {"judgements": hashlib.sha256(told.encode("ascii")).hexdigest()}

    @cached_property
    def judged_asks(self) -> list[JudgedAsk]:
        """One for each setting and first stage."""
        return [JudgedAsk(ask, self.judged, self.cutoffs) for ask in super().asks]

    @property
    def asks(self) -> list[JudgedAsk]:  # type: ignore[override]
        """One for each setting and first stage."""
        return self.judged_asks

    def result(self, records: Sequence[Record]) -> Result:
        """The metrics of the rankings, and the first setting against the others."""
        settings = [ask.setting for ask in self.asks]
        rows = rows_of(records, settings, self.seed)
        pairs = [(settings[0], other) for other in settings[1:]]
        differences = differences_of(records, pairs, self.seed, same_unit=TESTED, across=TESTED)
        table = rankings_table(rows, settings, self.cutoffs, self.judged)
        return Result(rows, differences, settings, tables=[table], cutoffs=self.cutoffs)


def judged_study_of(
    settings: Sequence[Setting], judged: JudgedCorpus, seed: int = 0, **options: object
) -> JudgedStudy:
    """The run that a command line asks for; ``options`` are further fields of `CorpusStudy`.

    Raises
    ------
    ValueError
        For the aggregation "long" of units that are not whole documents.
    """
    check_long(settings, options.get("aggregation", "max"))  # type: ignore[arg-type]
    corpus = SourceCorpus(judged.name, judged.documents, (), 0, 0)
    return JudgedStudy(settings, [corpus], seed, judged=judged, **options)  # type: ignore[arg-type]


def document_ranking_metrics(
    ranking: Sequence[str], grades: Mapping[str, int], cutoffs: Sequence[int]
) -> dict[str, float]:
    """Metrics such as "ndcg@10", "recall@100", "map" and "mrr", as trec_eval defines them.

    Parameters
    ----------
    ranking : sequence of str
        Ids of documents, the best first. Relevant documents that are not in it count as missed.
    grades : mapping
        Of the judged documents, at least one of them above 0. A grade below 0 counts as 0.
    cutoffs : sequence of int
    """
    gains = np.array([max(grades.get(document, 0), 0) for document in ranking], np.float64)
    ranked = set(ranking)
    missed = [grade for document, grade in grades.items() if grade > 0 and document not in ranked]
    places = -np.arange(len(gains), dtype=np.float64)
    return {
        measure.metric if measure.k is None else f"{measure.metric}@{measure.k}": value
        for measure, value in ranking_metrics(places, gains, cutoffs, missed).items()
    }


def kept_rankings(folder: Path, setting: Setting) -> Iterator[tuple[str, list[tuple[str, float]]]]:
    """The query and the ranking of each line of a setting; of a repeated query the last counts."""
    for _, line in complete_lines(folder / RANKINGS):
        kept = parse_json(line)
        if tuple(kept["setting"]) == setting.key:
            yield kept["query"], [(document, score) for document, score in kept["ranking"]]


def rankings_table(
    rows: Sequence[Row], settings: Sequence[Setting], cutoffs: Sequence[int], judged: JudgedCorpus
) -> Table:
    """A line for each setting: its metrics, and what they cost."""
    find = finder(rows)
    columns = [("ndcg", 10 if 10 in cutoffs else cutoffs[-1]), ("map", None), ("mrr", None)]
    columns += [("recall", k) for k in cutoffs]
    body = []
    for setting in settings:
        found = [find(setting, *column, judged.name) for column in columns]
        costs = [(find(setting, name, None, judged.name), digits) for name, digits in _COSTS.items()]
        told = ["-" if row is None else f"{row['value']:,.{digits}f}" for row, digits in costs]
        body.append([setting.label, shown(found[0]), *map(percent, found[1:]), *told])
    left = f", {judged.left_out:,} queries without a relevant one left out" if judged.left_out else ""
    return Table(
        "The ranking of documents",
        f"{len(judged.queries):,} queries on {len(judged.documents):,} documents of {judged.name}{left}. Percent, "
        "nDCG with the 95 % interval over queries. Documents and tokens scored, and seconds, for a query; an "
        "index is made before the clock starts.",
        ["retriever", *(name if k is None else f"{name}@{k}" for name, k in columns),
         "documents", "tokens", "seconds", "index MB"],
        body,
    )  # fmt: skip


def _file_name(setting: Setting) -> str:
    plain = re.sub(r"[^A-Za-z0-9.@-]+", "-", setting.label).strip("-.")[:80]
    return f"{plain}-{hashlib.sha256(setting.label.encode()).hexdigest()[:6]}"
