"""Retrieval by propositions ("Dense X Retrieval", Chen et al., 2024), with scores mapped to units of the text."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from spscanner_rag.baselines.base import Baseline, Scores, UnitKind, load
from spscanner_rag.scan.devices import choose
from spscanner_rag.scorers import (
    Cancelled,
    Request,
    UnitScores,
    check_query,
    never,
    stop_if,
)
from spscanner_rag.system.install_hints import import_extra
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.surrogates import replace_surrogates
from spscanner_rag.text.units import Segmenter, Unit


class Source(NamedTuple):
    """A passage and the title of its text; the title may be empty."""

    title: str
    content: str


SEQ2SEQ_INPUT = "Title: {title}. Section: . Content: {content}"
"""The input format of the checkpoint of "Dense X Retrieval", without a section
title."""

BATCH = 8  # passages read together

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_LENIENT = json.JSONDecoder(strict=False)  # allows line breaks inside strings


def read_reply(reply: str) -> tuple[str, ...]:
    """The strings of the JSON list in a reply, each on one line, without empty and repeated ones.

    If the list is broken or ends early, its complete strings are used.
    """
    listed = reply[reply.find("[") :] if "[" in reply else ""
    lines = (" ".join(_decoded(quoted).split()) for quoted in _STRING.findall(listed))
    return tuple(dict.fromkeys(line for line in lines if any(map(str.isalnum, line))))


def _decoded(quoted: str) -> str:
    try:
        return str(_LENIENT.decode(quoted))
    except ValueError:  # not an escape of JSON
        return quoted[1:-1]


class Seq2Seq:
    """A checkpoint like "chentong00/propositionizer-wiki-flan-t5-large".

    Its own code is never run.

    ``ImportError`` without transformers, ``ValueError`` if there is no such model.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        device: str | torch.device = "auto",
        dtype: str | torch.dtype = "float32",
        max_new_tokens: int = 512,
    ) -> None:
        library = import_extra("transformers", "a proposition model", "baselines")
        choice = choose(device, dtype)
        self.max_new_tokens, self.device = max_new_tokens, choice.device

        kinds, own = (
            (library.AutoTokenizer, library.AutoModelForSeq2SeqLM),
            {"trust_remote_code": False},
        )
        self._tokenizer = load(
            lambda path: kinds[0].from_pretrained(path, **own), model
        )
        network = load(
            lambda path: kinds[1].from_pretrained(path, dtype=choice.dtype, **own),
            model,
        )
        self._model = network.to(choice.device).eval()

    def __call__(self, sources: Sequence[Source]) -> Iterator[str]:
        """The reply for each passage, in order."""
        for start in range(0, len(sources), BATCH):
            some = sources[start : start + BATCH]
            texts = [
                replace_surrogates(SEQ2SEQ_INPUT.format(**source._asdict()))
                for source in some
            ]
            inputs = self._tokenizer(
                texts, padding=True, return_tensors="pt", verbose=False
            ).to(self.device)
            with torch.inference_mode():
                outputs = self._model.generate(
                    input_ids=inputs["input_ids"],
                    attention_mask=inputs["attention_mask"],
                    max_new_tokens=self.max_new_tokens,
                    do_sample=False,
                    num_beams=1,
                )
            yield from self._tokenizer.batch_decode(outputs, skip_special_tokens=True)


NO_PROPOSITION_LOGIT = -17.0
"""The logit of all units of a text without propositions; `log_odds` never returns
one as low."""

PASSAGE_WORDS = 100  # maximum length of a passage in words, as in "Dense X Retrieval"

# Chinese and Japanese are written without spaces, so each of their characters counts as
# a word.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+")


class Proposition(NamedTuple):
    """A self-contained statement with the span of its sentence, or of its passage if no sentence matches."""

    text: str
    start: int
    end: int


class Propositions(Baseline):
    """Decomposes passages into self-contained propositions (Chen et al., 2024, section 2) and scores these.

    Passages are whole sentences of at most `PASSAGE_WORDS` words in all. A proposition
    is tied to the sentence of its passage with which it shares most distinct words and
    pairs of adjacent words, ignoring case. If several share equally many, the last one
    is taken, because a proposition repeats names from earlier sentences.

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
    """

    keeps_texts = True

    def __init__(
        self,
        decomposer: str | Path,
        scorer: Baseline,
        unit: UnitKind | Segmenter = "sentence",
        *,
        titles: Mapping[str, str] | None = None,
        device: str | torch.device = "auto",
        dtype: str | torch.dtype = "float32",
    ) -> None:
        super().__init__(unit)
        if not isinstance(scorer, Baseline):
            raise TypeError(
                f"scorer is {type(scorer).__name__}; expected a baseline such as Dense"
            )
        self.scorer, self.titles = scorer, titles or {}
        self._replies = Seq2Seq(decomposer, device=device, dtype=dtype)
        self.name = f"propositions:{decomposer}"
        self._known: dict[Source, tuple[str, ...]] = {}

    def propositions(
        self, text: str, cancelled: Cancelled = never
    ) -> tuple[Proposition, ...]:
        """The propositions of a text, passage by passage.

        `ScanCancelled` if ``cancelled`` returned True.
        """
        passages = list(passages_of(text))
        spans = [(passage[0].start, passage[-1].end) for passage in passages]
        sources = [
            Source(self.titles.get(text, ""), text[start:end]) for start, end in spans
        ]
        with self._lock:
            new = [
                source for source in dict.fromkeys(sources) if source not in self._known
            ]
            stop_if(cancelled)
            for source, reply in zip(new, self._replies(new), strict=True):
                self._known[source] = read_reply(reply)
                stop_if(cancelled)
        found = []
        for passage, whole, source in zip(passages, spans, sources, strict=True):
            sentences = [terms(text[unit.start : unit.end]) for unit in passage]
            for statement in self._known[source]:
                place = tie(statement, sentences)
                found.append(
                    Proposition(
                        statement, *(whole if place is None else passage[place][:2])
                    )
                )
        return tuple(found)

    def best_propositions(self, query: str, text: str) -> list[Proposition]:
        """All propositions of a text, the best for a query first.

        Equal scores keep the order of the text.
        """
        check_query(query)
        found = self.propositions(text)
        scores = self.scorer.raw_scores(query, *_as_units(found))
        return [found[number] for number in np.argsort(-scores, kind="stable")]

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
        found = [
            self.propositions(text, cancelled) if units else ()
            for _, text, units in requests
        ]
        asked = [
            (query, *_as_units(own))
            for (query, _, _), own in zip(requests, found, strict=True)
        ]
        scored = self.scorer.raw_scores_many(asked, cancelled)
        for (_, _, units), own, scores in zip(requests, found, scored, strict=True):
            starts = np.array([unit.start for unit in units])
            ends = np.array([unit.end for unit in units])
            lowest = np.nextafter(scores.min(), np.float32(-np.inf)) if own else 0
            raw = np.full(len(units), lowest, np.float32)
            for proposition, score in zip(own, scores, strict=True):
                first = np.searchsorted(ends, proposition.start, "right")
                stop = np.searchsorted(starts, proposition.end, "left")
                raw[first:stop] = np.maximum(raw[first:stop], score)
            yield own, raw

    def logits(self, raw: Scores) -> Scores:
        """The scorer's logits."""
        return self.scorer.logits(raw)


def _as_units(propositions: Sequence[Proposition]) -> tuple[str, list[Unit]]:
    """Propositions as units of one text, so that a scorer can cache what it computes for them."""
    texts = [proposition.text for proposition in propositions]
    ends = np.cumsum([len(text) + 1 for text in texts]).tolist()
    lines = [
        Unit(end - 1 - len(text), end - 1, text)
        for text, end in zip(texts, ends, strict=True)
    ]
    return "\n".join(texts), lines


def passages_of(text: str) -> Iterator[list[Unit]]:
    """Split a text into passages of whole sentences: at most `PASSAGE_WORDS` words, or one longer sentence."""
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


def terms(text: str) -> frozenset[str | tuple[str, str]]:
    """The distinct words and pairs of adjacent words of a text, ignoring case."""
    words = _WORD.findall(text.casefold())
    return frozenset(words) | frozenset(pairwise(words))


def tie(statement: str, sentences: Sequence[Set[object]]) -> int | None:
    """The index of the sentence that shares most terms with a statement (the last of equals), or None."""
    own = terms(statement)
    shared = [len(own & sentence) for sentence in sentences]
    most = max(shared, default=0)
    return len(shared) - 1 - shared[::-1].index(most) if most else None
