"""Retrieval by propositions ("Dense X Retrieval", Chen et al., 2024), with scores mapped to units of the text."""

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple, Unpack

import numpy as np
import torch

from spscanner_rag.baselines.base import Baseline, Scores, TextCache, check_whole
from spscanner_rag.baselines.decomposers import Source, decomposer_of, read_reply
from spscanner_rag.baselines.units import UnitKind
from spscanner_rag.checkpoint.hub import HubOptions, check_hub_options
from spscanner_rag.files.json_files import append_records, complete_lines, parse_json
from spscanner_rag.results import ScanResult
from spscanner_rag.scorers import Cancelled, Request, check_query, never, stop_if
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.units import Segmenter, Unit

NO_PROPOSITION_LOGIT = -17.0
"""The logit of all units of a text without propositions: lower than any that `log_odds` returns."""

ScoreTexts = Callable[[str, list[str]], Scores]
Headings = Callable[[str, int], tuple[str, str]] | Mapping[str, str]

PASSAGE_WORDS = 100  # maximum length of a passage in words, as in "Dense X Retrieval"
Terms = frozenset[str | tuple[str, str]]

# Chinese and Japanese are written without spaces, so each of their characters counts as a word.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+")


_LOGGER = logging.getLogger(__name__)


class Proposition(NamedTuple):
    """A self-contained statement, with the span of its sentence, or of the passage if it is tied to none."""

    text: str
    start: int
    end: int
    passage_start: int
    passage_end: int


class Propositions(Baseline):
    """Decomposes passages into self-contained propositions and scores those (Chen et al., 2024).

    Passages are whole sentences of at most `PASSAGE_WORDS` words in all. A proposition is tied to the sentence of
    its passage with which it shares most distinct words and pairs of adjacent words, ignoring case. In a tie the
    last sentence counts, because a proposition repeats names from earlier sentences.

    The raw score of a unit is max s(p) over the propositions p tied to a sentence that overlaps it. Units without
    a proposition rank just below the others; all units of a text without any have the logit
    `NO_PROPOSITION_LOGIT`.

    A reply that is not a JSON list of strings is parsed as far as it goes, counted and logged.

    Parameters
    ----------
    decomposer
        A sequence-to-sequence checkpoint such as "chentong00/propositionizer-wiki-flan-t5-large", or a function
        from a prompt to a reply. `language_model_of` makes one of a LlamaIndex LLM or a LangChain model.
    scorer : Baseline or callable
        Scores the propositions: a baseline such as `Dense`, or a function from the query and a list of texts to
        one logit for each.
    unit : str or Segmenter, default "sentence"
        The units that get the scores; see `Baseline`.
    headings : mapping or callable, optional
        The title and section of a passage, which the paper's checkpoint reads before the passage: a mapping from
        texts to titles, as ``{document.text: document.title}``, or a function from the text and the offset of a
        passage to title and section. Default: both empty; then a passage that does not name its subject gives
        propositions that do not either.
    cache_file : str or Path, optional
        A file of JSON lines that stores decompositions. Default: they are kept in memory only.
    as_context : "unit" or "proposition", default "unit"
        What `result` and answers give to a language model: the units, ranked by their best proposition, or the
        propositions themselves.
    batch_size, device, dtype, revision, token, cache_dir, local_files_only
        For a checkpoint; see `Seq2Seq`.

    Attributes
    ----------
    passages_decomposed, replies_broken, replies_lost : int
        Numbers of passages sent to the decomposer, of replies that were not a JSON list of strings, and of those
        among them without any proposition.

    Raises
    ------
    ImportError, TypeError, ValueError
        For a checkpoint without transformers, or an invalid argument.
    """

    keeps_texts = True

    def __init__(
        self,
        decomposer: object,
        scorer: Baseline | ScoreTexts,
        unit: UnitKind | Segmenter = "sentence",
        *,
        headings: Headings | None = None,
        cache_file: str | Path | None = None,
        as_context: Literal["unit", "proposition"] = "unit",
        batch_size: int = 8,
        device: str | torch.device = "auto",
        dtype: str | torch.dtype = "float32",
        **hub: Unpack[HubOptions],
    ) -> None:
        super().__init__(unit)
        check_hub_options(hub)
        check_whole(batch_size=batch_size)
        if not isinstance(scorer, Baseline) and not callable(scorer):
            raise TypeError(
                f"scorer is {type(scorer).__name__}; expected a baseline such as Dense, or a function from a"
                " query and a list of texts to their scores"
            )
        if as_context not in ("unit", "proposition"):
            raise ValueError(f"as_context is {as_context!r}; expected 'unit' or 'proposition'")
        self.scorer, self.headings, self.as_context = scorer, headings, as_context
        name, self._replies = decomposer_of(
            decomposer, batch_size=batch_size, device=device, dtype=dtype, **hub
        )
        self.name = f"propositions:{name}"
        self._known = DecompositionCache(name, cache_file)
        self._texts: TextCache[tuple[Proposition, ...]] = TextCache(4)
        self.passages_decomposed = self.replies_broken = self.replies_lost = 0

    def propositions(self, text: str, cancelled: Cancelled = never) -> tuple[Proposition, ...]:
        """The propositions of a text, passage by passage; `ScanCancelled` if ``cancelled`` returned True."""
        return self._texts.get(text, (), lambda: tuple(self._tied(text, cancelled)))

    def best_propositions(self, query: str, text: str, cancelled: Cancelled = never) -> list[Proposition]:
        """All propositions of a text, the best for a query first; of equal ones the earlier first."""
        found, scores = self._scored_propositions(query, text, cancelled)
        return [found[number] for number in np.argsort(-scores, kind="stable")]

    def result(self, query: str, text: str, cancelled: Cancelled = never) -> ScanResult:
        """The context for a language model, as ``as_context`` says: the units, or all propositions, one a line."""
        if self.as_context == "proposition":
            found, scores = self._scored_propositions(query, text, cancelled)
            text = "\n".join(proposition.text for proposition in found)
            units, logits = _lines([proposition.text for proposition in found]), self.logits(scores)
        else:
            units = self.segment(text)
            (logits,) = self.score_units_many([(query, text, units)], cancelled=cancelled)
        starts, ends = np.array([unit[:2] for unit in units], np.int64).reshape(-1, 2).T
        return ScanResult(query, text, starts, ends, logits)

    def _scored_propositions(
        self, query: str, text: str, cancelled: Cancelled
    ) -> tuple[tuple[Proposition, ...], Scores]:
        check_query(query)
        found = self.propositions(text, cancelled)
        scores = self._scores(query, [own.text for own in found]) if found else np.zeros(0, np.float32)
        return found, scores

    def _scored(self, requests: Sequence[Request], cancelled: Cancelled) -> Iterator[Scores]:
        for query, text, units in requests:
            stop_if(cancelled)
            if units and not self.propositions(text, cancelled):
                yield np.full(len(units), NO_PROPOSITION_LOGIT, np.float32)
            else:
                yield from super()._scored([(query, text, units)], cancelled)

    def raw_scores(self, query: str, text: str, units: Sequence[Unit]) -> Scores:
        """The score of the best proposition tied to each unit: (units,). All 0 if the text has no proposition."""
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

    def logits(self, raw: Scores) -> Scores:
        """The scorer's logits; a function already returns logits."""
        return self.scorer.logits(raw) if isinstance(self.scorer, Baseline) else raw

    def _scores(self, query: str, texts: list[str]) -> Scores:
        if isinstance(self.scorer, Baseline):  # as units of one text, so that the scorer caches their vectors
            return self.scorer.raw_scores(query, "\n".join(texts), _lines(texts))
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
        title = section = ""
        if isinstance(self.headings, Mapping):
            title = self.headings.get(text, "")
        elif self.headings is not None:
            title, section = self.headings(text, start)
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
                self._known.add(source, statements, in_file=not lost)  # the next run retries a lost one
                stop_if(cancelled)
            broken, lost_here = self.replies_broken - before[0], self.replies_lost - before[1]
        if broken:
            _LOGGER.warning(
                "%s: %d of %d replies were not a JSON list of strings; %d of these gave no proposition",
                self.name, broken, len(new), lost_here,
            )  # fmt: skip
        return [self._known[source] for source in sources]


def _lines(texts: Sequence[str]) -> list[Unit]:
    """The units of texts that are joined by line breaks."""
    ends = np.cumsum([len(text) + 1 for text in texts]).tolist()
    return [Unit(end - 1 - len(text), end - 1, text) for text, end in zip(texts, ends, strict=True)]


class DecompositionCache(dict[Source, tuple[str, ...]]):
    """Maps passages to the propositions of the named decomposer, read from a file and appended to it.

    Unreadable lines are skipped and logged, and an incomplete last line, left by a killed process, is left out.
    """

    def __init__(self, decomposer: str, file: str | Path | None = None) -> None:
        super().__init__()
        self.decomposer = decomposer
        self.file = None if file is None else Path(file).expanduser()
        if self.file is None:
            return
        if not self.file.parent.is_dir() or (self.file.exists() and not self.file.is_file()):
            raise ValueError(f"cache_file is {file}; expected a file in a folder that exists")
        self.update(self._read(self.file))

    def add(self, source: Source, propositions: tuple[str, ...], *, in_file: bool = True) -> None:
        """Add the propositions of a passage."""
        self[source] = propositions
        if self.file is not None and in_file:
            record = {"decomposer": self.decomposer, **source._asdict(), "propositions": propositions}
            append_records(self.file, [record])

    def _read(self, path: Path) -> Iterator[tuple[Source, tuple[str, ...]]]:
        broken: list[int] = []
        for number, line in complete_lines(path):
            try:
                record = parse_json(line)
                source = Source(record["title"], record["section"], record["content"])
                propositions = tuple(record["propositions"])
                own = record["decomposer"] == self.decomposer
                if not all(isinstance(entry, str) for entry in (*source, *propositions)):
                    raise TypeError("expected strings")
            except (ValueError, KeyError, TypeError, RecursionError):
                if line.strip():
                    broken.append(number)
                continue
            if own:
                yield source, propositions
        if broken:
            _LOGGER.warning(
                "%s: left out %d lines that are not decompositions, the first being line %d",
                path, len(broken), broken[0],
            )  # fmt: skip


def passages_of(text: str) -> Iterator[list[Unit]]:
    """Split a text into passages of whole sentences, each of at most `PASSAGE_WORDS` words or one sentence."""
    passage: list[Unit] = []
    count = 0
    for unit in SentenceSegmenter().segment(text):
        length = len(text[unit.start : unit.end].split())
        if passage and count + length > PASSAGE_WORDS:
            yield passage
            passage, count = [], 0
        passage.append(unit)
        count += length
    if passage:
        yield passage


def terms(text: str) -> Terms:
    """The distinct words and pairs of adjacent words of a text, ignoring case."""
    words = _WORD.findall(text.casefold())
    return frozenset(words) | frozenset(pairwise(words))


def tie(statement: str, sentences: Sequence[tuple[Terms, int, int]]) -> tuple[int, int] | None:
    """The span of the last sentence, of (terms, start, end), that shares most terms with a statement, if any."""
    own = terms(statement)
    shared = [len(own & of_sentence) for of_sentence, _, _ in sentences]
    most = max(shared, default=0)
    if not most:
        return None
    last = len(shared) - 1 - shared[::-1].index(most)
    return sentences[last][1:]
