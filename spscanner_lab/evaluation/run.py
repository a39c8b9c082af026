"""Asks a retriever questions, of one document or of a corpus, and records how well it did and at what cost."""

import platform
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_lab.evaluation.corpora import Corpus, Pool, asked_of, read_of
from spscanner_lab.evaluation.records import Record, RecordFile
from spscanner_lab.evaluation.statistics import length_bin
from spscanner_lab.evidence.calibration import bins_of, filled
from spscanner_lab.evidence.metrics import (
    BUDGETS,
    CUTOFFS,
    answer_recall_at,
    answer_recall_at_words,
    best_first,
    character_metrics,
    ranking_metrics,
    recall_at_budgets,
)
from spscanner_lab.evidence.questions import Asked, Question, by_document
from spscanner_rag.baselines.combined import Cascade
from spscanner_rag.baselines.propositions import Propositions
from spscanner_rag.baselines.settings import Setting
from spscanner_rag.results.coverage import (
    Spans,
    evidence_ranks,
    evidence_sentences,
    relevant_units,
)
from spscanner_rag.results.selection import Aggregation, document_score, sigmoid
from spscanner_rag.results.selection import best_first as best_documents
from spscanner_rag.scorers import Progress, Scorer
from spscanner_rag.text.token_counts import CountTokens
from spscanner_rag.text.units import Unit

POSITION_CUTOFFS = {"sentence": (10, 50), "chunk": (5,)}
"""Ranks at which recall by position in the document is recorded; the last of each is
the paper's setting."""

POSITION_BINS = 10  # equal parts of a document

DOCUMENT_CUTOFFS = (1, 5, 10)  # cut-offs of the recall of a corpus's right document

MOST_RANKED = 1000  # documents kept of a query's ranking, as in TREC's runs

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)

Scorers = Mapping[Setting, Scorer]  # by plain setting

Qrels = dict[
    str, dict[str, int]
]  # the grade of each judged document, by query and document


def documents_alone(questions: Mapping[str, Sequence[Asked]]) -> Iterator[Corpus]:
    """Each document, with its questions from `sample_questions`, as a corpus of one."""
    for source, asked in questions.items():
        for document, own in by_document(asked):
            yield Corpus(
                source, (document,), [(document, question) for question in own]
            )


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How questions are asked of corpora, and what is measured."""

    first_stages: Sequence[str] = (
        "none",
    )  # or "bm25", or a retriever; "none" reads everything
    read_documents: int = 10  # maximum after a first stage
    among: int | None = (
        None  # number of documents to ask a question of, the hardest; None for all
    )
    characters: int | None = None  # maximum characters of a document
    cutoffs: Sequence[int] = (
        CUTOFFS  # the numbers of units k of the metrics of evidence
    )
    aggregation: Aggregation = (
        "max"  # how the scores of units become a document's score
    )
    exact: bool = False  # whether evidence is also measured by characters


class Scored(NamedTuple):
    """The documents that were scored for a question, their logits, and what scoring cost."""

    read: Sequence[int]  # numbers of the documents that were read
    logits: list[NDArray[np.float32]]  # (units,) for each document
    costs: dict[str, float]  # metrics
    answerable: float | None = (
        None  # probability that a single document answers, if given
    )


@dataclass(frozen=True)
class Ask:
    """All questions of a run that one setting is asked.

    If ``together``, each question is asked separately, of a whole corpus; otherwise all
    questions on a document are asked of that document alone, in one call. With
    ``calibrate``, sigmoids of scores are probabilities, and questions may be
    unanswerable. With ``qrels``, questions are queries, for which documents are ranked.
    """

    setting: Setting  # the one that the records name
    scorer: Setting  # the plain setting whose scorer is asked
    corpora: Callable[
        [], Iterable[Corpus]
    ]  # single documents are made one by one, so that few are in memory
    plan: Plan = Plan()
    stage: Setting | str | None = (
        None  # the first stage, as in `read_of`, or the setting whose scorer it is
    )
    together: bool = False
    calibrate: bool = False
    qrels: Qrels | None = None

    def run(
        self,
        scorers: Scorers,
        titles: dict[str, str],
        count_tokens: CountTokens,
        file: RecordFile,
        progress: Progress | None = None,
    ) -> None:
        """Ask all questions without a record in the file.

        ``titles`` gets the titles of the texts being read.
        """
        done, every = 0, sum(len(corpus.asked) for corpus in self.corpora())
        found = self._of_evidence if self.qrels is None else self._of_ranking
        for corpus in self.corpora():
            titles.clear()
            titles.update(
                (document.text, document.title) for document in corpus.documents
            )
            for group in (
                [[asked] for asked in corpus.asked] if self.together else [corpus.asked]
            ):
                keys = (
                    (*self.setting.key, d.source, d.doc_id, question.qid)
                    for d, question in group
                )
                waiting = [
                    asked
                    for asked, key in zip(group, keys, strict=True)
                    if key not in file.records
                ]
                if waiting:
                    file.add(found(scorers, corpus, waiting, count_tokens))
                done += len(group)
                if progress is not None:
                    progress(done, every)

    def score(
        self, scorers: Scorers, corpus: Corpus, queries: Sequence[str], right: int = 0
    ) -> list[Scored]:
        """Score the documents that are read for each query.

        ``right`` is the number of the right one, if known.

        The queries share the measured time equally; cutting texts and indexing a corpus
        are not in it.
        """
        scorer, plan = scorers[self.scorer], self.plan
        units = corpus.units(self.setting.unit, scorer)
        memory, answers, costs = PeakMemory(), list[float | None](), dict[str, float]()
        collection = asked_of(corpus, queries[0], right, plan.among)
        stage = scorers[self.stage] if isinstance(self.stage, Setting) else self.stage
        chosen = partial(
            read_of, corpus, queries[0], collection, stage, plan.read_documents
        )
        for number in chosen():
            units.units(number)
        if self.together and self.setting.has_index:
            indexed = scorer.scorers[0] if isinstance(scorer, Cascade) else scorer
            units.scores(indexed, queries, collection, collection)
        begun = time.perf_counter()
        read = chosen()
        if self.together:
            logits, answers = units.scores(scorer, queries, read, collection), [None]
            costs["documents_read"] = len(read)
        else:
            logits = units.scores(scorer, queries, read, answers=answers)
        costs["seconds"] = (time.perf_counter() - begun) / len(queries)
        if (peak := memory.megabytes()) is not None:
            costs["peak_megabytes"] = peak
        return [
            Scored(read, own, costs, sure)
            for own, sure in zip(logits, answers, strict=True)
        ]

    def _of_evidence(
        self,
        scorers: Scorers,
        corpus: Corpus,
        asked: Sequence[Asked],
        count_tokens: CountTokens,
    ) -> Iterator[Record]:
        """The records of questions on one document, without those whose evidence is only white space."""
        document = asked[0][0]
        right = corpus.numbers[document.doc_id]
        sentences = Spans.of(corpus.units("sentence").units(right))
        found = [
            (question, evidence_sentences(sentences, question.evidence))
            for _, question in asked
        ]
        questions = [
            (q, evidence)
            for q, evidence in found
            if len(evidence.starts) or not q.answerable
        ]
        if not questions:
            return
        scorer = scorers[self.scorer]
        units = corpus.units(self.setting.unit, scorer)
        scores = self.score(
            scorers, corpus, [question.text for question, _ in questions], right
        )
        for (question, evidence), scored in zip(questions, scores, strict=True):
            pool = units.pool(scored.read, count_tokens)
            values = np.concatenate([np.zeros(0, np.float32), *scored.logits])
            metrics, more = dict(scored.costs), dict[str, Any]()
            if self.calibrate:
                more = _calibration(scored.answerable, pool, values, question)
            if question.answerable:
                own, cutoffs = units.place(right, evidence), self.plan.cutoffs
                metrics |= measure(pool, values, own, cutoffs)
                if "recall@10" in metrics:
                    metrics[f"recall_by_length@{length_bin(len(document.text))}"] = (
                        metrics["recall@10"]
                    )
                if self.plan.exact:
                    exact = within(Spans.of(units.units(right)), question.evidence)
                    metrics |= character_metrics(
                        pool.spans, values, units.place(right, exact)
                    )
                if self.together:
                    is_right = [number == right for number in scored.read]
                    metrics |= document_metrics(
                        scored.logits, is_right, self.plan.aggregation
                    )
                    metrics["tokens_read"] = int(pool.tokens.sum())
                else:
                    ranks = evidence_ranks(pool.spans, values, own)
                    for k in POSITION_CUTOFFS.get(self.setting.unit, (10,)):
                        metrics |= recall_by_position(own, ranks, k, len(document.text))
                    ranked = [units.units(0)[number] for number in best_first(values)]
                    metrics |= answer_metrics(
                        scorer, question, document.text, ranked, cutoffs
                    )
            yield Record(
                *self.setting.key,
                source=corpus.source,
                split=document.split,
                doc_id=document.doc_id,
                qid=question.qid,
                characters=len(document.text),
                metrics=metrics,
                answerable=question.answerable,
                **more,
            )

    def _of_ranking(
        self,
        scorers: Scorers,
        corpus: Corpus,
        asked: Sequence[Asked],
        count_tokens: CountTokens,
    ) -> Iterator[Record]:
        """The record of a query, with its ranking.

        A document without units is not ranked.
        """
        ((_, query),) = asked
        (scored,) = self.score(scorers, corpus, [query.text])
        documents = [corpus.documents[number] for number in scored.read]
        ranked = best_documents(
            [document_score(own, self.plan.aggregation) for own in scored.logits]
        )
        ranking = {
            documents[n].doc_id: float(score)
            for n, score in ranked[:MOST_RANKED]
            if np.isfinite(score)
        }
        pool = corpus.units(self.setting.unit, scorers[self.scorer]).pool(
            scored.read, count_tokens
        )
        metrics = scored.costs | {"tokens_read": int(pool.tokens.sum())}
        assert self.qrels is not None
        metrics |= graded_metrics(
            list(ranking), self.qrels[query.qid], self.plan.cutoffs
        )
        size = sum(len(document.text) for document in documents)
        yield Record(
            *self.setting.key,
            corpus.source,
            "",
            query.qid,
            query.qid,
            size,
            metrics,
            ranking=ranking,
        )


def _calibration(
    highest: float | None, pool: Pool, scores: NDArray[np.floating], question: Question
) -> dict[str, Any]:
    """The probability of an answer and, for an answerable question, the bins of the sentences' probabilities."""
    probabilities = sigmoid(scores)
    found: dict[str, Any] = {
        "highest": float(probabilities.max(initial=0.0)) if highest is None else highest
    }
    if question.answerable:
        relevant = relevant_units(*pool.spans, question.evidence)
        found["bins"] = filled(bins_of(probabilities, relevant))
    return found


def measure(
    units: Pool,
    scores: NDArray[np.floating],
    evidence: Spans,
    cutoffs: Sequence[int] = CUTOFFS,
) -> dict[str, float]:
    """All metrics of one question, such as "recall@10", from 0 to 1, and the tokens of the best k units.

    Recall is the share of evidence sentences that lie at least half inside the best k
    units; "best_recall" is the recall of the k units that hold the most evidence
    sentences. A unit is relevant for precision, nDCG, success and MRR if it holds at
    least half of an evidence sentence; these are 0 if no unit does.
    """
    held = np.zeros(
        len(units.spans.starts), np.int64
    )  # evidence sentences in each unit
    for start, end in zip(*evidence, strict=True):
        inside = np.minimum(units.spans.ends, end) - np.maximum(
            units.spans.starts, start
        )
        held += 2 * inside >= end - start
    metrics: dict[str, float] = {}
    for name, order in (("recall", scores), ("best_recall", held.astype(np.float64))):
        ranks = evidence_ranks(units.spans, order, evidence)
        metrics |= {f"{name}@{k}": float((ranks <= k).mean()) for k in cutoffs}
    measured = ranking_metrics(
        scores, held > 0, cutoffs, missed=() if held.any() else (1.0,)
    )
    # recall is measured by sentences above, and ERR is for graded documents
    metrics |= {
        name: v
        for name, v in measured.items()
        if not name.startswith(("recall@", "err@"))
    }
    budgets = recall_at_budgets(units.spans, scores, units.tokens, evidence, BUDGETS)
    metrics |= {
        f"recall_at_tokens@{budget}": value for budget, value in budgets.items()
    }
    tokens = units.tokens[best_first(scores)]  # tokens that units share count in each
    return metrics | {f"tokens@{k}": int(tokens[:k].sum()) for k in cutoffs}


def answer_metrics(
    scorer: Scorer,
    question: Question,
    text: str,
    ranked: Sequence[Unit],
    cutoffs: Sequence[int],
) -> dict[str, float]:
    """Whether a right answer is in the best of the ``ranked`` units, by number of units and by number of words."""
    texts = [text[unit.start : unit.end] for unit in ranked]
    found = {
        "answer_recall": answer_recall_at(texts, question.answers, cutoffs),
        "answer_recall_at_words": answer_recall_at_words(texts, question.answers),
    }
    if isinstance(scorer, Propositions) and question.answers:
        best = (
            proposition.text
            for proposition in scorer.best_propositions(question.text, text)
        )
        found["answer_recall_in_propositions"] = answer_recall_at_words(
            best, question.answers
        )
    return {
        f"{name}@{k}": value for name, own in found.items() for k, value in own.items()
    }


def within(units: Spans, evidence: Iterable[tuple[int, int]]) -> Spans:
    """The parts of evidence inside units, each character once.

    White space between units is outside.
    """
    held, wanted = np.zeros((2, int(units.ends.max(initial=0)) + 2), bool)
    for marks, spans in ((held, zip(*units, strict=True)), (wanted, evidence)):
        for start, end in spans:
            marks[start + 1 : end + 1] = True
    starts, ends = np.flatnonzero(np.diff(held & wanted)).reshape(-1, 2).T
    return Spans(starts, ends)


def document_metrics(
    scores: Sequence[NDArray[np.floating]],
    right: Sequence[bool],
    aggregation: Aggregation = "max",
) -> dict[str, float]:
    """Reciprocal rank and recall@1, 5 and 10 of the right document, 0 if it was not read; scores: (units,)."""
    names = ["mrr", *(f"recall@{k}" for k in DOCUMENT_CUTOFFS)]
    best = np.array([document_score(values, aggregation) for values in scores])
    found = (
        ranking_metrics(best, np.array(right), DOCUMENT_CUTOFFS) if any(right) else {}
    )
    return {f"document_{name}": found.get(name, 0.0) for name in names}


def graded_metrics(
    ranking: Sequence[str], grades: Mapping[str, int], cutoffs: Sequence[int]
) -> dict[str, float]:
    """Metrics of a ranking of ids, best first, such as "ndcg@10", "recall@100", "map" and "mrr", as in trec_eval.

    Relevant documents that are not in the ranking count as missed; a grade below 0
    counts as 0.
    """
    gains = np.array(
        [max(grades.get(document, 0), 0) for document in ranking], np.float64
    )
    ranked = set(ranking)
    missed = [
        grade
        for document, grade in grades.items()
        if grade > 0 and document not in ranked
    ]
    places = -np.arange(len(gains), dtype=np.float64)
    return ranking_metrics(places, gains, cutoffs, missed)


def recall_by_position(
    sentences: Spans, ranks: NDArray[np.int64], k: int, characters: int
) -> dict[str, float]:
    """The share of evidence sentences among the best k, in each tenth of the document that has any (Figure 13).

    A sentence counts in the tenth that contains its middle.
    """
    places = (sentences.starts + sentences.ends) * POSITION_BINS // (2 * characters)
    there = np.bincount(places, minlength=POSITION_BINS)
    seen = np.bincount(places, weights=ranks <= k, minlength=POSITION_BINS)
    return {
        f"recall_by_position@{k}@{part + 1}": float(seen[part] / there[part])
        for part in np.flatnonzero(there)
    }


class PeakMemory:
    """Measures the peak memory of this process, on Linux.

    A new object resets the kernel's only peak.
    """

    def __init__(self) -> None:
        try:
            _RESET.write_text("5", encoding="ascii")
            self._known = True
        except OSError:  # not Linux, or not permitted
            self._known = False

    def megabytes(self) -> float | None:
        """Megabytes of resident memory at the peak, models included.

        None if the system does not report it.
        """
        found = (
            _PEAK.search(_STATUS.read_text(encoding="ascii")) if self._known else None
        )
        return None if found is None else int(found[1]) * 1024 / 1e6


def processor_name() -> str:
    """The name of the processor, for reports."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [
        line.partition(":")[2].strip()
        for line in lines
        if line.startswith("model name")
    ]
    return names[0] if names else platform.processor() or platform.machine()
