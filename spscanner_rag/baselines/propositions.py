"""Retrieval by proposition ("Dense X Retrieval", Chen et al.), results mapped to the units of the text."""

import logging
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from spscanner_rag.baselines.base import Baseline
from spscanner_rag.baselines.decomposers import Source, decomposer_of, read_reply
from spscanner_rag.baselines.decomposition_cache import DecompositionCache
from spscanner_rag.baselines.prepared import PreparedTexts
from spscanner_rag.baselines.units import UnitKind
from spscanner_rag.scorers import Cancelled, Request, never, stop_if
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.units import Segmenter, Unit

PASSAGE_WORDS = 100
"""Words of the passages that are decomposed, as in the paper."""

NO_PROPOSITION_LOGIT = -17.0
"""Of all units of a text that has no propositions: below any share that `log_odds` gives."""

ScoreTexts = Callable[[str, list[str]], NDArray[np.float32]]
Terms = frozenset[str | tuple[str, str]]
Headings = Callable[[str, int], tuple[str, str]]

_LOGGER = logging.getLogger(__name__)
# Chinese and Japanese are written without spaces: each of their characters is a word here.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+")


class Proposition(NamedTuple):
    """A self-contained statement, and where it comes from.

    Attributes
    ----------
    text
        The statement.
    start, end
        Character span of the sentence that it is tied to; of the passage if it shares no word with any.
    passage_start, passage_end
        Character span of the passage.
    """

    text: str
    start: int
    end: int
    passage_start: int
    passage_end: int


class Propositions(Baseline):
    """Passages are decomposed into self-contained propositions, and those are scored.

    Passages are runs of whole sentences with at most `PASSAGE_WORDS` words. A proposition is tied to the
    sentence of its passage with which it shares most words and pairs of adjacent words, each counted once,
    whatever their case; of several, to the last, since a proposition names what earlier sentences brought
    in. The raw score of a unit is that of the best
    proposition tied to a sentence that overlaps it. Units without one come just below the others; all units
    of a text without any have the logit `NO_PROPOSITION_LOGIT`.

    Replies that are no JSON list of strings are read as far as they go, counted and logged.

    Parameters
    ----------
    decomposer
        As for `decomposer_of`: a sequence-to-sequence checkpoint such as
        "chentong00/propositionizer-wiki-flan-t5-large", a LlamaIndex LLM, a LangChain model, or a function
        from a prompt to a reply.
    scorer : Baseline or callable
        What scores propositions: a baseline such as `Dense`, which also says what logits its scores are, or
        a function from the query and a list of texts to one logit for each.
    unit : str or Segmenter, default "sentence"
        As for `Baseline`: what the scores are mapped to.
    headings : callable, optional
        From the text and the place of a passage in it to the title and section the passage stands under,
        which make its propositions clearer. Default: both empty.
    cache_file : str or Path, optional
        A file of JSON lines that keeps decompositions. Default: they are kept in memory alone.
    batch_size, device, dtype, revision, token, cache_dir, local_files_only
        For a checkpoint; as for `Seq2Seq`.

    Attributes
    ----------
    passages_decomposed, replies_broken, replies_lost : int
        Passages sent to the decomposer; replies that were no JSON list of strings; those of them that gave
        no proposition at all.

    Raises
    ------
    ImportError
        If a checkpoint is given and transformers is not installed; names the line that installs it.
    TypeError, ValueError
        For an argument that is not as said above.
    """

    def __init__(
        self,
        decomposer: object,
        scorer: Baseline | ScoreTexts,
        unit: UnitKind | Segmenter = "sentence",
        *,
        headings: Headings | None = None,
        cache_file: str | Path | None = None,
        batch_size: int = 8,
        device: str | torch.device = "auto",
        dtype: str | torch.dtype = "float32",
        revision: str | None = None,
        token: str | bool | None = None,
        cache_dir: str | Path | None = None,
        local_files_only: bool = False,
    ) -> None:
        super().__init__(unit)
        if not isinstance(scorer, Baseline) and not callable(scorer):
            raise TypeError(
                f"scorer is {type(scorer).__name__}; expected a baseline such as Dense, or a function from a"
                " query and a list of texts to their scores"
            )
        if type(batch_size) is not int or batch_size < 1:
            raise ValueError(f"batch_size is {batch_size!r}; expected a whole number of at least 1")
        self.scorer, self.headings = scorer, headings
        name, self._replies = decomposer_of(
            decomposer,
            batch_size=batch_size,
            device=device,
            dtype=dtype,
            revision=revision,
            token=token,
            cache_dir=cache_dir,
            local_files_only=local_files_only,
        )
        self._name = f"propositions:{name}"
        self._known = DecompositionCache(name, cache_file)
        self._texts: PreparedTexts[tuple[Proposition, ...]] = PreparedTexts(4)
        self._lock = threading.Lock()
        self.passages_decomposed = self.replies_broken = self.replies_lost = 0

    @property
    def name(self) -> str:
        """Its name in tables: "propositions:" and the model that decomposes."""
        return self._name

    def propositions(self, text: str, cancelled: Cancelled = never) -> tuple[Proposition, ...]:
        """The propositions of a text, passage by passage.

        Raises
        ------
        ScanCancelled
            If ``cancelled`` returned True.
        """
        return self._texts.get(text, (), lambda: tuple(self._tied(text, cancelled)))

    def score_units(self, query: str, text: str, units: Sequence[Unit]) -> NDArray[np.float32]:
        """One logit for each unit: (units,). As `Baseline.score_units`."""
        return self.score_units_many([(query, text, units)])[0]

    def score_units_many(
        self, requests: Sequence[Request], *, cancelled: Cancelled = never
    ) -> list[NDArray[np.float32]]:
        """Logits of the units of several texts; ``cancelled`` is asked between passages.

        Raises
        ------
        ValueError
            If a query is empty.
        ScanCancelled
            If ``cancelled`` returned True.
        """
        scored: list[NDArray[np.float32]] = []
        for query, text, units in requests:
            stop_if(cancelled)
            if units and query.strip() and not self.propositions(text, cancelled):
                scored.append(np.full(len(units), NO_PROPOSITION_LOGIT, np.float32))
            else:
                scored.append(super().score_units(query, text, units))
        return scored

    def raw_scores(self, query: str, text: str, units: Sequence[Unit]) -> NDArray[np.float32]:
        """Of the best proposition tied to each unit, by the scorer: (units,). All 0 if there are none."""
        found = self.propositions(text)
        if not found:
            return np.zeros(len(units), np.float32)
        scores = self._scores(query, [proposition.text for proposition in found])
        starts = np.array([unit.start for unit in units])
        ends = np.array([unit.end for unit in units])
        raw = np.full(len(units), np.nextafter(scores.min(), np.float32(-np.inf)), np.float32)
        for proposition, score in zip(found, scores, strict=True):
            first = np.searchsorted(ends, proposition.start, "right")
            stop = np.searchsorted(starts, proposition.end, "left")
            raw[first:stop] = np.maximum(raw[first:stop], score)
        return raw

    def logits(self, raw: NDArray[np.float32]) -> NDArray[np.float32]:
        """As the scorer says; what a function returns is taken for logits."""
        return self.scorer.logits(raw) if isinstance(self.scorer, Baseline) else raw

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    def _scores(self, query: str, texts: list[str]) -> NDArray[np.float32]:
        if isinstance(self.scorer, Baseline):  # as units of a text, so that its vectors are kept
            ends = np.cumsum([len(text) + 1 for text in texts]).tolist()
            units = [Unit(end - 1 - len(text), end - 1, text) for text, end in zip(texts, ends, strict=True)]
            return self.scorer.raw_scores(query, "\n".join(texts), units)
        scores = np.asarray(self.scorer(query, texts), np.float32)
        if scores.shape != (len(texts),) or not np.isfinite(scores).all():
            raise ValueError(
                f"the scorer returned shape {scores.shape} for {len(texts)} propositions; expected one finite"
                " number for each"
            )
        return scores

    def _tied(self, text: str, cancelled: Cancelled) -> Iterator[Proposition]:
        passages = list(passages_of(text))
        decomposed = self._decomposed([self._source(text, passage) for passage in passages], cancelled)
        for passage, statements in zip(passages, decomposed, strict=True):
            whole = (passage[0].start, passage[-1].end)
            sentences = [(terms(text[unit.start : unit.end]), unit.start, unit.end) for unit in passage]
            for statement in statements:
                yield Proposition(statement, *(tie(statement, sentences) or whole), *whole)

    def _source(self, text: str, passage: Sequence[Unit]) -> Source:
        start, end = passage[0].start, passage[-1].end
        title, section = ("", "") if self.headings is None else self.headings(text, start)
        return Source(title, section, text[start:end])

    def _decomposed(self, sources: list[Source], cancelled: Cancelled) -> list[tuple[str, ...]]:
        with self._lock:
            new = [source for source in dict.fromkeys(sources) if source not in self._known]
            before = (self.replies_broken, self.replies_lost)
            stop_if(cancelled)
            for source, reply in zip(new, self._replies(new), strict=True):
                statements, is_list = read_reply(reply)
                lost = not is_list and not statements
                self.passages_decomposed += 1
                self.replies_broken += not is_list
                self.replies_lost += lost
                self._known.add(source, statements, in_file=not lost)  # so that the next run tries again
                stop_if(cancelled)
            broken, lost_here = self.replies_broken - before[0], self.replies_lost - before[1]
        if broken:
            _LOGGER.warning(
                "%s: %d of %d replies were no JSON list of strings; %d of these gave no proposition",
                self.name, broken, len(new), lost_here,
            )  # fmt: skip
        return [self._known[source] for source in sources]


def passages_of(text: str, most_words: int = PASSAGE_WORDS) -> Iterator[list[Unit]]:
    """Runs of whole sentences, each of as many as keep it within the number of words, but at least one."""
    passage: list[Unit] = []
    count = 0
    for unit in SentenceSegmenter().segment(text):
        length = len(text[unit.start : unit.end].split())
        if passage and count + length > most_words:
            yield passage
            passage, count = [], 0
        passage.append(unit)
        count += length
    if passage:
        yield passage


def terms(text: str) -> Terms:
    """The distinct words of a text and pairs of adjacent words, whatever their case."""
    words = _WORD.findall(text.casefold())
    return frozenset(words) | frozenset(pairwise(words))


def tie(statement: str, sentences: Sequence[tuple[Terms, int, int]]) -> tuple[int, int] | None:
    """The span of the sentence that a statement is tied to, by the rule of `Propositions`; None without one.

    ``sentences`` are the terms, start and end of each.
    """
    own = terms(statement)
    shared = [len(own & of_sentence) for of_sentence, _, _ in sentences]
    most = max(shared, default=0)
    if not most:
        return None
    last = len(shared) - 1 - shared[::-1].index(most)
    return sentences[last][1:]
