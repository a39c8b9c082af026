"""Asks one setting its questions, and records how well it did and at what cost.

Questions are asked of a single document or of a corpus.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_lab.evaluation.corpora import SourceCorpus
from spscanner_lab.evaluation.corpus_units import CorpusUnits, UnitPool
from spscanner_lab.evaluation.first_stage import collection_of, documents_to_read
from spscanner_lab.evaluation.machine import PeakMemory
from spscanner_lab.evaluation.question_metrics import (
    OTHER_POSITION_CUTOFFS,
    POSITION_CUTOFFS,
    answer_metrics,
    document_metrics,
    evidence_metrics,
    graded_metrics,
    recall_by_position,
    within,
)
from spscanner_lab.evaluation.records import Record, RecordFile
from spscanner_lab.evaluation.rows import length_bin
from spscanner_lab.evaluation.setting_run import SettingRun
from spscanner_lab.evaluation.tokenization_time import (
    tokenization_seconds,
    tokenize_of,
)
from spscanner_lab.evaluation.work import (
    BATCH_DOCUMENTS,
    CutText,
    batches,
    work_counter,
)
from spscanner_lab.evidence.calibration import bins_of, filled
from spscanner_lab.evidence.metrics import best_first, character_metrics
from spscanner_lab.evidence.questions import Document, Question, QuestionOnDocument
from spscanner_rag.baselines.cascade import Cascade
from spscanner_rag.baselines.settings import Setting
from spscanner_rag.results.coverage import (
    Spans,
    evidence_ranks,
    evidence_sentences,
    relevant_units,
)
from spscanner_rag.results.document_scores import document_score
from spscanner_rag.results.ranking import best_first as best_documents
from spscanner_rag.results.ranking import sigmoid
from spscanner_rag.scorers import Progress, Scorer
from spscanner_rag.text.token_counts import CountTokens

MOST_RANKED = 1000  # documents of a query's ranking in its record, as in TREC's runs

Scorers = Mapping[Setting, Scorer]  # by plain setting


class ScoredDocuments(NamedTuple):
    """The documents that were scored for a question, and what scoring cost.

    ``numbers`` are those of the documents, ``logits`` are (units,) for each of them,
    and ``costs`` are metrics. ``answerable`` is the probability that a single document
    answers the question, if the scorer gives one.
    """

    numbers: Sequence[int]
    logits: list[NDArray[np.float32]]
    costs: dict[str, float]
    answerable: float | None = None

    @property
    def values(self) -> NDArray[np.float32]:
        """The logits of all units together: (units of all documents,)."""
        return np.concatenate([np.zeros(0, np.float32), *self.logits])


class LocatedQuestion(NamedTuple):
    """A question, its document, and the evidence sentences in it."""

    document: Document
    question: Question
    evidence: Spans


class Questioner:
    """Asks the questions of one setting of a run."""

    def __init__(
        self, setting_run: SettingRun, scorers: Scorers, count_tokens: CountTokens
    ) -> None:
        self.run = setting_run
        self.plan = setting_run.plan
        self.count_tokens = count_tokens
        self.scorer = scorers[setting_run.scorer]
        self.stage: Scorer | str | None
        if isinstance(setting_run.stage, Setting):
            self.stage = scorers[setting_run.stage]
        else:
            self.stage = setting_run.stage
        self._work_counter = work_counter(self.scorer)
        self._tokenize = tokenize_of(self.scorer)

    def ask_all(
        self,
        titles: dict[str, str],
        file: RecordFile,
        progress: Progress | None = None,
    ) -> None:
        """Ask all questions without a record in the file.

        ``titles`` gets the titles of the texts being read.
        """
        done = 0
        total = 0
        for corpus in self.run.corpora():
            total += len(corpus.questions)
        batch_size = 1 if self.run.together else BATCH_DOCUMENTS
        for batch in batches(self.run.corpora(), batch_size):
            for corpus in batch:
                titles.clear()
                for document in corpus.documents:
                    titles[document.text] = document.title
                for pairs in self._calls(corpus):
                    waiting = self._without_record(pairs, file)
                    if waiting:
                        file.add(self._records(corpus, batch, waiting))
                    done += len(pairs)
                    if progress is not None:
                        progress(done, total)

    def _calls(self, corpus: SourceCorpus) -> list[Sequence[QuestionOnDocument]]:
        """The questions of each call."""
        if self.run.together:
            return list(batches(corpus.questions, 1))
        return [corpus.questions]

    def _without_record(
        self, pairs: Sequence[QuestionOnDocument], file: RecordFile
    ) -> list[QuestionOnDocument]:
        waiting = []
        for document, question in pairs:
            ids = (document.source, document.doc_id, question.qid)
            if (*self.run.setting.key, *ids) not in file.records:
                waiting.append((document, question))
        return waiting

    def score(
        self, corpus: SourceCorpus, queries: Sequence[str], right: int = 0
    ) -> list[ScoredDocuments]:
        """Score the documents that are read for each query.

        ``right`` is the number of the right one, if there is one.

        The queries share the measured time equally; cutting texts and indexing a corpus
        are not in it. "seconds_computing" is the time without tokenizing, of a single
        document.
        """
        units = corpus.units(self.run.setting.unit, self.scorer)
        memory = PeakMemory()
        costs: dict[str, float] = {}
        collection = collection_of(corpus, queries[0], right, self.plan.among)
        choose = partial(
            documents_to_read,
            corpus,
            queries[0],
            collection,
            self.stage,
            self.plan.read_documents,
        )
        for number in choose():
            units.units(number)
        if self.run.together and self.run.setting.has_index:
            self._make_index(units, queries, collection)
        begun = time.perf_counter()
        numbers = choose()
        if self.run.together:
            scores = units.scores(self.scorer, queries, numbers, collection)
            costs["documents_read"] = len(numbers)
        else:
            scores = units.scores(self.scorer, queries, numbers)
        seconds = time.perf_counter() - begun
        costs["seconds"] = seconds / len(queries)
        if not self.run.together and self._tokenize is not None:
            (text,) = _texts(units, numbers)
            tokenizing = tokenization_seconds(self._tokenize, queries, text)
            costs["seconds_computing"] = max(0.0, seconds - tokenizing) / len(queries)
        peak = memory.megabytes()
        if peak is not None:
            costs["peak_megabytes"] = peak
        scored = []
        for scores_of_query in scores:
            logits = [unit_scores.logits for unit_scores in scores_of_query]
            answerable = None
            if not self.run.together:
                answerable = scores_of_query[0].answerable
            scored.append(ScoredDocuments(numbers, logits, costs, answerable))
        return scored

    def _make_index(
        self, units: CorpusUnits, queries: Sequence[str], collection: Sequence[int]
    ) -> None:
        """Score the collection, so that an index is made before the clock starts."""
        indexed = self.scorer
        if isinstance(indexed, Cascade):
            indexed = indexed.scorers[0]
        units.scores(indexed, queries, collection, collection)

    def _work(
        self,
        query: str,
        corpus: SourceCorpus,
        numbers: Sequence[int],
        batch: Sequence[SourceCorpus],
    ) -> dict[str, float]:
        """The metrics of work, if there is a formula for it.

        In a batch of several corpora, each is a single document.
        """
        counter = self._work_counter
        if counter is None:
            return {}
        unit = self.run.setting.unit
        texts = _texts(corpus.units(unit, self.scorer), numbers)
        if len(batch) == 1:
            return counter.of_texts(query, texts).metrics()
        batch_texts = []
        for other in batch:
            batch_texts += _texts(other.units(unit, self.scorer), [0])
        work = counter.of_query(query) + counter.of_text(query, texts[0], batch_texts)
        return work.metrics()

    def _records(
        self,
        corpus: SourceCorpus,
        batch: Sequence[SourceCorpus],
        pairs: Sequence[QuestionOnDocument],
    ) -> Iterator[Record]:
        if self.run.qrels is not None:
            return self._ranking_records(corpus, pairs)
        return self._evidence_records(corpus, batch, pairs)

    def _evidence_records(
        self,
        corpus: SourceCorpus,
        batch: Sequence[SourceCorpus],
        pairs: Sequence[QuestionOnDocument],
    ) -> Iterator[Record]:
        """The records of questions on one document.

        A question whose evidence is only white space has none.
        """
        document = pairs[0][0]
        right = corpus.numbers[document.doc_id]
        sentences = Spans.of(corpus.units("sentence").units(right))
        questions = []
        for _, question in pairs:
            evidence = evidence_sentences(sentences, question.evidence)
            if len(evidence.starts) or not question.answerable:
                questions.append(LocatedQuestion(document, question, evidence))
        if not questions:
            return
        queries = [item.question.text for item in questions]
        scores = self.score(corpus, queries, right)
        for item, scored in zip(questions, scores, strict=True):
            query = item.question.text
            costs = scored.costs | self._work(query, corpus, scored.numbers, batch)
            yield self._evidence_record(corpus, item, scored, costs)

    def _evidence_record(
        self,
        corpus: SourceCorpus,
        item: LocatedQuestion,
        scored: ScoredDocuments,
        costs: Mapping[str, float],
    ) -> Record:
        document = item.document
        question = item.question
        units = corpus.units(self.run.setting.unit, self.scorer)
        pool = units.pool(scored.numbers, self.count_tokens)
        metrics = dict(costs)
        calibration: dict[str, Any] = {}
        if self.run.calibrate:
            calibration = _calibration(scored, pool, question)
        if question.answerable:
            right = corpus.numbers[document.doc_id]
            metrics |= self._metrics_of_ranking(corpus, pool, item, scored, right)
            if self.run.together:
                metrics |= self._metrics_of_corpus(pool, scored, right)
            else:
                metrics |= self._metrics_of_document(units, pool, item, scored)
        return Record(
            *self.run.setting.key,
            source=corpus.source,
            split=document.split,
            doc_id=document.doc_id,
            qid=question.qid,
            characters=len(document.text),
            metrics=metrics,
            answerable=question.answerable,
            **calibration,
        )

    def _tokens_of_document(self, corpus: SourceCorpus, document: Document) -> int:
        """The length that the data give, or that of the sentences together."""
        if document.tokens is not None:
            return document.tokens
        number = corpus.numbers[document.doc_id]
        sentences = corpus.units("sentence").pool([number], self.count_tokens)
        return int(sentences.tokens.sum())

    def _metrics_of_ranking(
        self,
        corpus: SourceCorpus,
        pool: UnitPool,
        item: LocatedQuestion,
        scored: ScoredDocuments,
        right: int,
    ) -> dict[str, float]:
        """What is measured of single documents and of corpora."""
        units = corpus.units(self.run.setting.unit, self.scorer)
        evidence = units.place(right, item.evidence)
        metrics = evidence_metrics(pool, scored.values, evidence, self.plan.cutoffs)
        if "recall@10" in metrics:
            edge = length_bin(self._tokens_of_document(corpus, item.document))
            metrics[f"recall_by_length@{edge}"] = metrics["recall@10"]
        if self.plan.exact:
            exact = within(Spans.of(units.units(right)), item.question.evidence)
            spans = units.place(right, exact)
            metrics |= character_metrics(pool.spans, scored.values, spans)
        return metrics

    def _metrics_of_corpus(
        self, pool: UnitPool, scored: ScoredDocuments, right: int
    ) -> dict[str, float]:
        is_right = [number == right for number in scored.numbers]
        metrics = document_metrics(scored.logits, is_right, self.plan.aggregation)
        metrics["tokens_read"] = int(pool.tokens.sum())
        return metrics

    def _metrics_of_document(
        self,
        units: CorpusUnits,
        pool: UnitPool,
        item: LocatedQuestion,
        scored: ScoredDocuments,
    ) -> dict[str, float]:
        text = item.document.text
        evidence = item.evidence
        metrics: dict[str, float] = {}
        ranks = evidence_ranks(pool.spans, scored.values, evidence)
        unit = self.run.setting.unit
        for k in POSITION_CUTOFFS.get(unit, OTHER_POSITION_CUTOFFS):
            metrics |= recall_by_position(evidence, ranks, k, len(text))
        ranking = [units.units(0)[number] for number in best_first(scored.values)]
        metrics |= answer_metrics(
            self.scorer, item.question, text, ranking, self.plan.cutoffs
        )
        return metrics

    def _ranking_records(
        self, corpus: SourceCorpus, pairs: Sequence[QuestionOnDocument]
    ) -> Iterator[Record]:
        """The record of a query, with its ranking.

        A document without units is not ranked.
        """
        ((_, query),) = pairs
        (scored,) = self.score(corpus, [query.text])
        documents = [corpus.documents[number] for number in scored.numbers]
        scores = []
        for values in scored.logits:
            scores.append(document_score(values, self.plan.aggregation))
        ranking = {}
        for place, score in best_documents(scores)[:MOST_RANKED]:
            if np.isfinite(score):
                ranking[documents[place].doc_id] = float(score)
        units = corpus.units(self.run.setting.unit, self.scorer)
        pool = units.pool(scored.numbers, self.count_tokens)
        metrics = scored.costs | {"tokens_read": int(pool.tokens.sum())}
        metrics |= self._work(query.text, corpus, scored.numbers, [corpus])
        assert self.run.qrels is not None
        grades = self.run.qrels[query.qid]
        metrics |= graded_metrics(list(ranking), grades, self.plan.cutoffs)
        yield Record(
            *self.run.setting.key,
            source=corpus.source,
            split="",
            doc_id=query.qid,
            qid=query.qid,
            characters=sum(len(document.text) for document in documents),
            metrics=metrics,
            ranking=ranking,
        )


def _texts(units: CorpusUnits, numbers: Sequence[int]) -> list[CutText]:
    texts = []
    for number in numbers:
        texts.append(CutText(units.documents[number].text, units.units(number)))
    return texts


def _calibration(
    scored: ScoredDocuments, pool: UnitPool, question: Question
) -> dict[str, Any]:
    """The probability of an answer and the bins of the sentences' probabilities.

    There are bins for an answerable question only.
    """
    probabilities = sigmoid(scored.values)
    highest = scored.answerable
    if highest is None:
        highest = float(probabilities.max(initial=0.0))
    fields: dict[str, Any] = {"highest": highest}
    if question.answerable:
        relevant = relevant_units(*pool.spans, question.evidence)
        fields["bins"] = filled(bins_of(probabilities, relevant))
    return fields
