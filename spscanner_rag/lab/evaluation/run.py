"""Asks a retriever questions, of one document or of a whole corpus, and records how well it did on each."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.baselines.cascade import Cascade
from spscanner_rag.baselines.propositions import Propositions
from spscanner_rag.lab.evaluation.corpora import Corpus, Pool, asked_of, read_of
from spscanner_rag.lab.evaluation.costs import PeakMemory, gigaflops_of, index_megabytes
from spscanner_rag.lab.evaluation.records import Record, RecordFile
from spscanner_rag.lab.evaluation.settings import Setting
from spscanner_rag.lab.evidence.calibration import Bins
from spscanner_rag.lab.evidence.metrics import (
    BUDGETS,
    CUTOFFS,
    answer_recall_at,
    answer_recall_at_words,
    best_first,
    character_metrics,
    ranking_metrics,
    recall_at_budgets,
    tokens_at,
)
from spscanner_rag.lab.evidence.questions import Document, Question
from spscanner_rag.lab.evidence.sampling import Asked, by_document
from spscanner_rag.results.coverage import (
    Spans,
    coverage_recall_at,
    evidence_ranks,
    evidence_sentences,
    relevant_units,
)
from spscanner_rag.results.document_score import Aggregation, document_score
from spscanner_rag.results.selection import sigmoid
from spscanner_rag.scorers import Progress, Scorer
from spscanner_rag.text.token_counts import CountTokens
from spscanner_rag.text.units import Unit

POSITION_CUTOFFS = {"sentence": (10, 50), "chunk": (5,)}
"""Ranks at which recall by place in the document is recorded; the last of each is the paper's setting."""

POSITION_BINS = 10  # equal parts of a document

DOCUMENT_CUTOFFS = (1, 5, 10)  # ranks at which the right document of a corpus is looked for

Corpora = Callable[[], Iterable[Corpus]]
"""Gives the corpora of a run; those of single documents are made one by one, so that few are held."""


def documents_alone(questions: Mapping[str, Sequence[Asked]]) -> Iterator[Corpus]:
    """Each document with its questions, from `sample_questions`, as a corpus of one."""
    for source, asked in questions.items():
        for document, own in by_document(asked):
            yield Corpus(source, (document,), [(document, question) for question in own])


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How questions are asked of corpora, and what is measured."""

    first_stages: Sequence[str] = ("none",)  # or "bm25", or a retriever; "none" reads everything
    read_documents: int = 10  # after a first stage, at most
    among: int | None = None  # the documents that a question is asked of: all, or so many of the hardest
    characters: int | None = None  # most of a document
    cutoffs: Sequence[int] = CUTOFFS  # numbers of units for the metrics of evidence
    aggregation: Aggregation = "max"  # how a document is scored by its units
    exact: bool = False  # evidence is measured by characters, too


class Scored(NamedTuple):
    """The documents that were scored for a question, the logits, and what they cost."""

    read: Sequence[int]  # numbers of the documents that were read
    logits: list[NDArray[np.float32]]  # (units,) of each
    seconds: float
    peak_megabytes: float | None
    index_megabytes: float | None  # None for a document alone
    answerable: float | None = None  # of a document alone, where the scorer says how probably it answers


@dataclass(frozen=True)
class Ask:
    """All questions of a run that one setting is asked.

    Each is asked of a corpus by itself, or, if not ``together``, all questions on a document of it alone, in one
    call. With ``calibrate``, the sigmoids of the scores are probabilities, and the questions may include
    unanswerable ones.
    """

    setting: Setting  # that the records name
    scorer: Setting  # the plain setting, whose scorer is asked
    corpora: Corpora
    plan: Plan = Plan()
    stage: Setting | str | None = None  # the first stage, as in `read_of`, or whose scorer it is
    together: bool = False
    calibrate: bool = False

    @property
    def questions(self) -> int:
        """Their number."""
        return sum(len(corpus.asked) for corpus in self.corpora())

    def run(
        self,
        scorers: Mapping[Setting, Scorer],
        titles: dict[str, str],
        count_tokens: CountTokens,
        file: RecordFile,
        progress: Progress | None = None,
    ) -> None:
        """Ask all questions that have no record in the file; fills ``titles`` by the texts being read."""
        done, every = 0, self.questions
        for corpus in self.corpora():
            titles.clear()
            titles.update((document.text, document.title) for document in corpus.documents)
            for group in [[asked] for asked in corpus.asked] if self.together else [corpus.asked]:
                waiting = [asked for asked in group if self._key(*asked) not in file.records]
                if waiting:
                    file.add(self.records(scorers, corpus, waiting, count_tokens, file.path.parent))
                done += len(group)
                if progress is not None:
                    progress(done, every)
        self.finish(file.path.parent)

    def finish(self, folder: Path) -> None:
        """Write what else there is when all questions have a record."""

    def score(
        self, scorers: Mapping[Setting, Scorer], corpus: Corpus, queries: Sequence[str], right: int = 0
    ) -> list[Scored]:
        """Score the documents that are read for each query; ``right`` is the number of the right one, if known.

        The queries share their time equally. Indexes of a corpus are made before the clock starts.
        """
        scorer, plan = scorers[self.scorer], self.plan
        units = corpus.units(self.setting.unit, scorer)
        memory = PeakMemory()
        if not self.together:
            units.units(0)  # cut before the clock starts
            begun = time.perf_counter()
            answers: list[float | None] = []
            logits = units.scores(scorer, queries, [0], answers=answers)
            seconds, peak = (time.perf_counter() - begun) / len(queries), memory.megabytes()
            return [
                Scored([0], own, seconds, peak, None, answerable)
                for own, answerable in zip(logits, answers, strict=True)
            ]
        (query,) = queries
        collection = asked_of(corpus, query, right, plan.among)
        stage = scorers[self.stage] if isinstance(self.stage, Setting) else self.stage
        chosen = partial(read_of, corpus, query, collection, stage, plan.read_documents)
        chosen()
        if self.setting.has_index:
            indexed = scorer.scorers[0] if isinstance(scorer, Cascade) else scorer
            units.scores(indexed, queries, collection, collection)
        begun = time.perf_counter()
        read = chosen()
        (own,) = units.scores(scorer, queries, read, collection)
        seconds = time.perf_counter() - begun
        megabytes = index_megabytes(scorer, units, collection)
        return [Scored(read, own, seconds, memory.megabytes(), megabytes)]

    def _key(self, document: Document, question: Question) -> tuple[str, ...]:
        return *self.setting.key, document.source, document.doc_id, question.qid

    def records(
        self,
        scorers: Mapping[Setting, Scorer],
        corpus: Corpus,
        asked: Sequence[Asked],
        count_tokens: CountTokens,
        folder: Path,
    ) -> Iterator[Record]:
        """The records of questions on one document; none for evidence without a sentence, only white space."""
        document = asked[0][0]
        right = corpus.numbers[document.doc_id]
        sentences = Spans.of(corpus.units("sentence").units(right))
        found = [(question, evidence_sentences(sentences, question.evidence)) for _, question in asked]
        questions = [(q, evidence) for q, evidence in found if len(evidence.starts) or not q.answerable]
        if not questions:
            return
        scorer = scorers[self.scorer]
        units = corpus.units(self.setting.unit, scorer)
        scores = self.score(scorers, corpus, [question.text for question, _ in questions], right)
        for (question, evidence), scored in zip(questions, scores, strict=True):
            pool = units.pool(scored.read, count_tokens)
            values = np.concatenate([np.zeros(0, np.float32), *scored.logits])
            metrics: dict[str, float] = {}
            more: dict[str, Any] = (
                _calibration(scored.answerable, pool, values, question) if self.calibrate else {}
            )
            if question.answerable:
                own = units.place(right, evidence)
                metrics = measure(pool, values, own, self.plan.cutoffs)
                more["tokens"] = {
                    str(k): n for k, n in tokens_at(values, pool.tokens, self.plan.cutoffs).items()
                }
                if self.plan.exact:
                    spans = units.place(right, Spans(*np.array(question.evidence, np.int64).T))
                    metrics |= character_metrics(pool.spans, values, list(zip(*spans, strict=True)))
                if not self.together:
                    text, cut = document.text, units.units(0)
                    metrics |= self._answers(scorer, question, text, [cut[i] for i in best_first(values)])
                    ranks = evidence_ranks(pool.spans, values, own)
                    more["positions"] = {
                        str(k): recall_by_position(own, ranks <= k, len(text))
                        for k in POSITION_CUTOFFS.get(self.setting.unit, (10,))
                    }
                    more["gigaflops"] = gigaflops_of(scorer, question.text, text, cut)
                else:
                    is_right = [number == right for number in scored.read]
                    metrics |= document_metrics(scored.logits, is_right, self.plan.aggregation)
                    more |= {"documents_read": len(scored.read), "tokens_read": int(pool.tokens.sum())}
            yield Record(
                *self.setting.key,
                source=corpus.source,
                split=document.split,
                doc_id=document.doc_id,
                qid=question.qid,
                characters=len(document.text),
                metrics=metrics,
                seconds=scored.seconds,
                peak_megabytes=scored.peak_megabytes,
                index_megabytes=scored.index_megabytes,
                answerable=question.answerable,
                **more,
            )

    def _answers(
        self, scorer: Scorer, question: Question, text: str, ranked: Sequence[Unit]
    ) -> dict[str, float]:
        """Whether a right answer is in the best of the ``ranked`` units, by their number and by their words."""
        texts = [text[unit.start : unit.end] for unit in ranked]
        answers = {
            "answer_recall": answer_recall_at(texts, question.answers, self.plan.cutoffs),
            "answer_recall_at_words": answer_recall_at_words(texts, question.answers),
        }
        if isinstance(scorer, Propositions) and question.answers:
            best = (proposition.text for proposition in scorer.best_propositions(question.text, text))
            answers["answer_recall_in_propositions"] = answer_recall_at_words(best, question.answers)
        return {f"{name}@{k}": value for name, own in answers.items() for k, value in own.items()}


def _calibration(
    highest: float | None, pool: Pool, scores: NDArray[np.floating], question: Question
) -> dict[str, Any]:
    """The probability of an answer and, if there is evidence, the bins of the sentences' probabilities."""
    probabilities = sigmoid(scores)
    found: dict[str, Any] = {"highest": float(probabilities.max(initial=0.0)) if highest is None else highest}
    if question.answerable:
        relevant = relevant_units(*pool.spans, question.evidence)
        found["bins"] = Bins.of(probabilities, relevant).filled()
    return found


def measure(
    units: Pool, scores: NDArray[np.floating], evidence: Spans, cutoffs: Sequence[int] = CUTOFFS
) -> dict[str, float]:
    """All metrics of one question, such as "recall@10", from 0 to 1.

    Recall is the share of evidence sentences that lie at least half inside the best k units; "best_recall" is the
    recall of the k units that hold most of them. A unit counts as relevant for precision, nDCG, success and MRR
    if it holds at least half of an evidence sentence.
    """
    held = np.zeros(len(units.spans.starts), np.int64)  # evidence sentences in each unit
    for start, end in zip(*evidence, strict=True):
        inside = np.minimum(units.spans.ends, end) - np.maximum(units.spans.starts, start)
        held += 2 * inside >= end - start
    metrics = {
        f"{name}@{k}": value
        for name, order in (("recall", scores), ("best_recall", held.astype(np.float64)))
        for k, value in coverage_recall_at(units.spans, order, evidence, cutoffs).items()
    }
    relevant = held > 0
    if relevant.any():
        measured = ranking_metrics(scores, relevant, cutoffs)
        # recall is of sentences, and err for graded documents
        metrics |= {name: v for name, v in measured.items() if not name.startswith(("recall@", "err@"))}
    budgets = recall_at_budgets(units.spans, scores, units.tokens, evidence, BUDGETS)
    return metrics | {f"recall_at_tokens@{budget}": value for budget, value in budgets.items()}


def document_metrics(
    scores: Sequence[NDArray[np.floating]], right: Sequence[bool], aggregation: Aggregation = "max"
) -> dict[str, float]:
    """Reciprocal rank and recall@1, 5 and 10 of the right document; 0 if it has no scores, (units,)."""
    names = ["mrr", *(f"recall@{k}" for k in DOCUMENT_CUTOFFS)]
    if not any(right):
        return {f"document_{name}": 0.0 for name in names}
    best = np.array([document_score(values, aggregation) for values in scores])
    found = ranking_metrics(best, np.array(right), DOCUMENT_CUTOFFS)
    return {f"document_{name}": found[name] for name in names}


def recall_by_position(sentences: Spans, found: NDArray[np.bool_], characters: int) -> list[float | None]:
    """The share of the evidence sentences found in each tenth of the document (Figure 13), or None.

    A sentence counts in the part that its middle is in.
    """
    places = (sentences.starts + sentences.ends) * POSITION_BINS // (2 * characters)
    there = np.bincount(places, minlength=POSITION_BINS).tolist()
    seen = np.bincount(places, weights=found, minlength=POSITION_BINS).tolist()
    return [hits / all_there if all_there else None for hits, all_there in zip(seen, there, strict=True)]
