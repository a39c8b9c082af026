"""Asks a retriever questions and records how well it did on each question."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.baselines.propositions import Propositions
from spscanner_rag.baselines.units import segmenter_of
from spscanner_rag.lab.evaluation.budget import BUDGETS, recall_at_budgets, tokens_at
from spscanner_rag.lab.evaluation.costs import PeakMemory, cost_of
from spscanner_rag.lab.evaluation.positions import recall_by_position
from spscanner_rag.lab.evaluation.records import Record, RecordFile
from spscanner_rag.lab.evaluation.settings import Setting
from spscanner_rag.lab.evaluation.word_budget import answer_recall_at_words
from spscanner_rag.lab.evidence.calibration import Bins
from spscanner_rag.lab.evidence.metrics import CUTOFFS, best_first, ranking_metrics
from spscanner_rag.lab.evidence.questions import Document, Question
from spscanner_rag.lab.evidence.sampling import Asked, by_document
from spscanner_rag.results.coverage import (
    Spans,
    coverage_recall_at,
    evidence_ranks,
    evidence_sentences,
    relevant_units,
)
from spscanner_rag.results.selection import sigmoid
from spscanner_rag.scorers import Progress, Scorer, score_batch
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.token_counts import CountTokens
from spscanner_rag.text.units import Unit

POSITION_CUTOFFS = {"sentence": (10, 50), "chunk": (5,)}
"""Ranks at which recall by place in the document is recorded; the last of each is the paper's setting."""


class LaidOut(NamedTuple):
    """A document, its sentences, and the questions asked on it."""

    document: Document
    sentences: Sequence[Unit]
    questions: Sequence[Question]


Layout = Callable[[Document, Sequence[Question], Sequence[Unit]], Iterator[LaidOut]]
"""Gives the versions of a document, such as rotations, on which its questions are asked."""


def as_it_is(
    document: Document, questions: Sequence[Question], sentences: Sequence[Unit]
) -> Iterator[LaidOut]:
    """The unchanged document, with all of its questions."""
    yield LaidOut(document, sentences, questions)


def titled(layout: Layout, titles: dict[str, str]) -> Layout:
    """The same layout, which also makes ``titles`` map the text being read to the title of its document.

    A layout may change the text, so titles cannot be looked up by the texts of the data.
    """

    def lay(
        document: Document, questions: Sequence[Question], sentences: Sequence[Unit]
    ) -> Iterator[LaidOut]:
        for laid in layout(document, questions, sentences):
            titles.clear()
            titles[laid.document.text] = laid.document.title
            yield laid

    return lay


def run_setting(
    setting: Setting,
    scorer: Scorer,
    questions: Mapping[str, Sequence[Asked]],
    count_tokens: CountTokens,
    file: RecordFile,
    progress: Progress | None = None,
    layout: Layout = as_it_is,
    calibrate: bool = False,
    cutoffs: Sequence[int] = CUTOFFS,
) -> None:
    """Ask a retriever all questions that have no record in the file, document by document.

    Parameters
    ----------
    setting, scorer
        The setting that the records name, and its loaded retriever.
    questions
        By source, from `sample_questions`.
    count_tokens
        Counts the tokens of a text; use the same function for all settings.
    file
        Receives the records.
    progress
        Called with the number of questions done and of all questions.
    layout
        Gives what the retriever reads instead of the document. Default: the document itself.
    calibrate
        Treat the sigmoids of the scores as probabilities and record what their calibration needs; then
        ``questions`` may include unanswerable ones.
    cutoffs
        Numbers of units for the metrics.
    """
    total = sum(len(asked) for asked in questions.values())
    done = 0
    sentences, ranked = SentenceSegmenter(), segmenter_of(setting.unit)  # type: ignore[arg-type]
    for asked in questions.values():
        for document, its_questions in by_document(asked):
            name = (*setting.key, document.source, document.doc_id)
            waiting = [question for question in its_questions if (*name, question.qid) not in file.records]
            if waiting:
                for laid in layout(document, waiting, sentences.segment(document.text)):
                    is_sentence = setting.unit == "sentence"
                    units = laid.sentences if is_sentence else ranked.segment(laid.document.text)
                    cut = Cut(laid.document, units, Spans.of(laid.sentences), count_tokens)
                    file.add(_records(setting, scorer, cut, laid.questions, calibrate, cutoffs))
            done += len(its_questions)
            if progress is not None:
                progress(done, total)


class Ranked(Protocol):
    """Units that are ranked."""

    @property
    def spans(self) -> Spans:
        """Their spans."""
        ...

    @property
    def tokens(self) -> NDArray[np.int64]:
        """Their numbers of tokens: (units,)."""
        ...


class Cut:
    """A document, the units that are ranked, and the sentences that evidence is measured in."""

    def __init__(
        self, document: Document, units: Sequence[Unit], sentences: Spans, count_tokens: CountTokens
    ) -> None:
        self.document, self.units, self.sentences = document, units, sentences
        self.spans = Spans.of(units)
        # once for each document: the counts do not depend on the question
        self.tokens = np.array([count_tokens(document.text[u.start : u.end]) for u in units], np.int64)


def _records(
    setting: Setting,
    scorer: Scorer,
    cut: Cut,
    questions: Sequence[Question],
    calibrate: bool,
    cutoffs: Sequence[int],
) -> Iterator[Record]:
    text = cut.document.text
    memory, begun = PeakMemory(), time.perf_counter()
    requests = [(question.text, text, cut.units) for question in questions]
    scores = list(score_batch(scorer, requests))
    seconds, megabytes = (time.perf_counter() - begun) / len(questions), memory.megabytes()
    for question, values in zip(questions, scores, strict=True):
        record = Record(
            *setting.key,
            source=cut.document.source,
            split=cut.document.split,
            doc_id=cut.document.doc_id,
            qid=question.qid,
            characters=len(text),
            metrics={},
            seconds=seconds,
            peak_megabytes=megabytes,
            answerable=question.answerable,
        )
        probabilities = sigmoid(values)
        if calibrate:
            record = replace(record, highest=float(probabilities.max(initial=0.0)))
        if not question.answerable:
            yield record
            continue
        if calibrate:
            relevant = relevant_units(*cut.spans, question.evidence)
            record = replace(record, bins=Bins.of(probabilities, relevant).filled())
        evidence = evidence_sentences(cut.sentences, question.evidence)
        if len(evidence.starts):  # evidence that is only white space has no sentence
            cost = cost_of(scorer, question.text, text, cut.units)
            yield replace(
                record,
                metrics=measure(cut, values, evidence, cutoffs) | _answers(scorer, cut, question, values),
                tokens={str(k): n for k, n in tokens_at(values, cut.tokens, cutoffs).items()},
                positions=_positions(setting.unit, cut, values, evidence),
                gigaflops=cost and cost.gigaflops,
                gigaflops_padded=cost and cost.padded,
            )


def _answers(scorer: Scorer, cut: Cut, question: Question, scores: NDArray[np.floating]) -> dict[str, float]:
    """Whether the answers are in the best units, and in the best propositions where the scorer has them."""
    text = cut.document.text
    ranked = (text[cut.units[i].start : cut.units[i].end] for i in best_first(scores, len(scores)))
    found = {"answer_recall_at_words": answer_recall_at_words(ranked, question.answers)}
    if isinstance(scorer, Propositions) and question.answers:
        best = (proposition.text for proposition in scorer.best_propositions(question.text, text))
        found["answer_recall_in_propositions"] = answer_recall_at_words(best, question.answers)
    return {f"{name}@{words}": value for name, own in found.items() for words, value in own.items()}


def measure(
    cut: Ranked, scores: NDArray[np.floating], evidence: Spans, cutoffs: Sequence[int] = CUTOFFS
) -> dict[str, float]:
    """All metrics of one question, such as "recall@10", from 0 to 1.

    Recall is the share of evidence sentences that lie at least half inside the best k units; "best_recall" is the
    recall of the k units that hold most of them. A unit counts as relevant for precision, nDCG, success and MRR
    if it holds at least half of an evidence sentence.
    """
    held = np.zeros(len(cut.spans.starts), np.int64)  # evidence sentences in each unit
    for start, end in zip(*evidence, strict=True):
        inside = np.minimum(cut.spans.ends, end) - np.maximum(cut.spans.starts, start)
        held += 2 * inside >= end - start
    metrics = {
        f"{name}@{k}": value
        for name, order in (("recall", scores), ("best_recall", held.astype(np.float64)))
        for k, value in coverage_recall_at(cut.spans, order, evidence, cutoffs).items()
    }
    relevant = held > 0
    if relevant.any():
        for (metric, k), value in ranking_metrics(scores, relevant, cutoffs).items():
            if metric != "recall":
                metrics[f"{metric}@{k}" if k is not None else metric] = value
    budgets = recall_at_budgets(cut.spans, scores, cut.tokens, evidence, BUDGETS)
    return metrics | {f"recall_at_tokens@{budget}": value for budget, value in budgets.items()}


def _positions(
    unit: str, cut: Cut, scores: NDArray[np.floating], evidence: Spans
) -> dict[str, list[float | None]]:
    ranks = evidence_ranks(cut.spans, scores, evidence)
    found: dict[str, list[float | None]] = {}
    for k in POSITION_CUTOFFS.get(unit, (10,)):
        recalls = recall_by_position(evidence, ranks <= k, len(cut.document.text))
        found[str(k)] = [None if np.isnan(recall) else recall for recall in recalls.tolist()]
    return found
