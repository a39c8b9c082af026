"""Retrieval by propositions ("Dense X Retrieval", Chen et al., 2024).

Scores of propositions are mapped to units of the text.
"""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spscanner_rag.baselines.baseline import Baseline, Scores
from spscanner_rag.baselines.proposition_replies import Source, read_reply
from spscanner_rag.baselines.unit_kinds import UnitKind
from spscanner_rag.scorers import (
    Cancelled,
    Request,
    UnitScores,
    check_query,
    never,
    stop_if,
)
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.units import Segmenter, Unit

if TYPE_CHECKING:
    import torch

NO_PROPOSITION_LOGIT = -17.0
"""The logit of all units of a text without propositions; `log_odds` never returns
one as low."""

PASSAGE_WORDS = 100  # maximum length of a passage in words, as in "Dense X Retrieval"

# Chinese and Japanese are written without spaces, so each of their characters counts as
# a word.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+")


class Proposition(NamedTuple):
    """A self-contained statement with the span of its sentence.

    If no sentence matches, the span is that of its passage.
    """

    text: str
    start: int
    end: int


class Propositions(Baseline):
    """Scores propositions, into which a model decomposes passages (Chen et al., 2024).

    Propositions are self-contained (section 2). Passages are whole sentences of at most
    `PASSAGE_WORDS` words in all. A proposition is tied to the sentence of its passage
    with which it shares most distinct words and pairs of adjacent words, ignoring case.
    If several share equally many, the last one is taken, because a proposition repeats
    names from earlier sentences.

    The raw score of a unit is max s(p) over the propositions p tied to a sentence that
    overlaps it. Units without a proposition rank just below the others; if a text has
    no proposition at all, all its units have the logit `NO_PROPOSITION_LOGIT`.

    Parameters
    ----------
    decomposer : str or Path
        A sequence-to-sequence checkpoint such as
        "chentong00/propositionizer-wiki-flan-t5-large".
    scorer : Baseline
        Scores the propositions, such as `Dense`.
    unit : str or Segmenter, default "sentence"
        The units that get the scores; see `Baseline`.
    titles : mapping of str to str, optional
        Titles of texts, as ``{document.text: document.title}``; the paper's checkpoint
        reads the title before each passage. Without a title, propositions of a passage
        that does not name its subject do not name it either.
    device, dtype
        See `Scanner.from_pretrained`.

    Examples
    --------
    >>> decomposer = "chentong00/propositionizer-wiki-flan-t5-large"
    >>> scorer = Propositions(decomposer, Dense())  # doctest: +SKIP
    >>> units = scorer.units_of(text)  # doctest: +SKIP
    >>> logits = scorer.score_units("Who signed it?", text, units)  # doctest: +SKIP
    """

    keeps_texts = True

    def __init__(
        self,
        decomposer: str | Path,
        scorer: Baseline,
        unit: UnitKind | Segmenter = "sentence",
        *,
        titles: Mapping[str, str] | None = None,
        device: "str | torch.device" = "auto",
        dtype: "str | torch.dtype" = "float32",
    ) -> None:
        # It needs torch, which evaluating other retrievers does not.
        from spscanner_rag.baselines.proposition_model import Seq2Seq

        super().__init__(unit)
        if not isinstance(scorer, Baseline):
            raise TypeError(
                f"scorer is {type(scorer).__name__}; expected a baseline such as Dense"
            )
        self.scorer = scorer
        self.titles = titles or {}
        self._replies = Seq2Seq(decomposer, device=device, dtype=dtype)
        self.name = f"propositions:{decomposer}"
        self._statements: dict[Source, tuple[str, ...]] = {}

    def propositions(
        self, text: str, cancelled: Cancelled = never
    ) -> tuple[Proposition, ...]:
        """The propositions of a text, passage by passage.

        `ScanCancelled` if ``cancelled`` returned True.
        """
        passages = list(passages_of(text))
        title = self.titles.get(text, "")
        sources = []
        for sentences in passages:
            content = text[sentences[0].start : sentences[-1].end]
            sources.append(Source(title, content))
        self._decompose(sources, cancelled)
        propositions = []
        for sentences, source in zip(passages, sources, strict=True):
            passage_span = (sentences[0].start, sentences[-1].end)
            terms_by_sentence = [
                terms(text[sentence.start : sentence.end]) for sentence in sentences
            ]
            for statement in self._statements[source]:
                number = tie(statement, terms_by_sentence)
                span = passage_span
                if number is not None:
                    span = (sentences[number].start, sentences[number].end)
                propositions.append(Proposition(statement, *span))
        return tuple(propositions)

    def _decompose(self, sources: Sequence[Source], cancelled: Cancelled) -> None:
        """Ask the model about passages that it has not read yet."""
        with self._lock:
            new_sources = []
            for source in dict.fromkeys(sources):
                if source not in self._statements:
                    new_sources.append(source)
            stop_if(cancelled)
            replies = self._replies(new_sources)
            for source, reply in zip(new_sources, replies, strict=True):
                self._statements[source] = read_reply(reply)
                stop_if(cancelled)

    def best_propositions(self, query: str, text: str) -> list[Proposition]:
        """All propositions of a text, the best for a query first.

        Equal scores keep the order of the text.
        """
        check_query(query)
        propositions = self.propositions(text)
        scores = self.scorer.raw_scores(query, *_as_units(propositions))
        ranking = np.argsort(-scores, kind="stable")
        return [propositions[number] for number in ranking]

    def score_units_many(
        self,
        requests: Sequence[Request],
        *,
        collection: object = None,
        cancelled: Cancelled = never,
    ) -> list[UnitScores]:
        """As `Baseline.score_units_many`.

        `NO_PROPOSITION_LOGIT` for texts without propositions.
        """
        for query, _, _ in requests:
            check_query(query)
        scores = []
        for propositions, raw in self._best_of_units(requests, cancelled):
            if propositions:
                logits = self.logits(raw)
            else:
                logits = np.full(len(raw), NO_PROPOSITION_LOGIT, np.float32)
            scores.append(UnitScores(logits))
        return scores

    def raw_scores_many(
        self, requests: Sequence[Request], cancelled: Cancelled = never
    ) -> Iterator[Scores]:
        """The score of the best proposition tied to each unit, (units,) each.

        0 for a text without any.
        """
        return (raw for _, raw in self._best_of_units(requests, cancelled))

    def _best_of_units(
        self, requests: Sequence[Request], cancelled: Cancelled
    ) -> Iterator[tuple[tuple[Proposition, ...], Scores]]:
        propositions_by_text = []
        proposition_requests = []
        for query, text, units in requests:
            propositions = self.propositions(text, cancelled) if units else ()
            propositions_by_text.append(propositions)
            proposition_requests.append((query, *_as_units(propositions)))
        scores_by_text = self.scorer.raw_scores_many(proposition_requests, cancelled)
        for (_, _, units), propositions, scores in zip(
            requests, propositions_by_text, scores_by_text, strict=True
        ):
            yield propositions, _scores_of_units(units, propositions, scores)

    def logits(self, raw: Scores) -> Scores:
        """The scorer's logits."""
        return self.scorer.logits(raw)


def _scores_of_units(
    units: Sequence[Unit], propositions: Sequence[Proposition], scores: Scores
) -> Scores:
    """The score of the best proposition that overlaps each unit: (units,).

    A unit without any is just below the lowest; 0 if there are no propositions.
    """
    starts = np.array([unit.start for unit in units])
    ends = np.array([unit.end for unit in units])
    lowest = np.float32(0)
    if propositions:
        lowest = np.nextafter(scores.min(), np.float32(-np.inf))
    raw = np.full(len(units), lowest, np.float32)
    for proposition, score in zip(propositions, scores, strict=True):
        first = np.searchsorted(ends, proposition.start, "right")
        stop = np.searchsorted(starts, proposition.end, "left")
        raw[first:stop] = np.maximum(raw[first:stop], score)
    return raw


def _as_units(propositions: Sequence[Proposition]) -> tuple[str, list[Unit]]:
    """Propositions as units of one text, so that a scorer can keep what it computes."""
    units = []
    start = 0
    for proposition in propositions:
        end = start + len(proposition.text)
        units.append(Unit(start, end, proposition.text))
        start = end + 1
    return "\n".join(proposition.text for proposition in propositions), units


def passages_of(text: str) -> Iterator[list[Unit]]:
    """Split a text into passages of whole sentences.

    A passage has at most `PASSAGE_WORDS` words, or is one longer sentence.
    """
    passage: list[Unit] = []
    count = 0
    for unit in SentenceSegmenter().segment(text):
        length = len(text[unit.start : unit.end].split())
        if passage and count + length > PASSAGE_WORDS:
            yield passage
            passage = []
            count = 0
        passage.append(unit)
        count += length
    if passage:
        yield passage


def terms(text: str) -> frozenset[str | tuple[str, str]]:
    """The distinct words and pairs of adjacent words of a text, ignoring case."""
    words = _WORD.findall(text.casefold())
    return frozenset(words) | frozenset(pairwise(words))


def tie(statement: str, sentences: Sequence[Set[object]]) -> int | None:
    """Return the index of the sentence that shares most terms with a statement.

    Of several, it is the last one; None if no sentence shares a term.
    """
    statement_terms = terms(statement)
    best = None
    most_shared = 1
    for number, sentence_terms in enumerate(sentences):
        shared = len(statement_terms & sentence_terms)
        if shared >= most_shared:
            best = number
            most_shared = shared
    return best
