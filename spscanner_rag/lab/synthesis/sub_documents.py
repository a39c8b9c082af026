"""Random stretches of documents, of a few sizes in tokens, cut at sentence ends."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

from spscanner_rag.lab.evidence.questions import Document
from spscanner_rag.lab.synthesis.settings import SynthesisSettings
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.token_counts import CountTokens
from spscanner_rag.text.units import readable

_SAMPLE_CHARACTERS = 4_000
_LEAST_SHARE = 0.5
"""A document may have this share of the smallest size; a shorter one is left out."""


class Sentence(NamedTuple):
    """A sentence of a sub-document: its span and its number of tokens."""

    start: int
    end: int
    tokens: int


@dataclass(frozen=True, slots=True)
class SubDocument:
    """A stretch of a document.

    Attributes
    ----------
    number
        From 0, in the order of reading.
    doc_id, source, title, text
        ``doc_id`` is that of the document with the place of the first character after it.
    size
        The size that was wanted, in tokens.
    sentences
        Of the text, in order.
    held_out
        Whether its example belongs to the test file.
    """

    number: int
    doc_id: str
    source: str
    title: str
    text: str
    size: int
    sentences: tuple[Sentence, ...]
    held_out: bool = False

    @property
    def tokens(self) -> int:
        """Number of tokens of the sentences."""
        return sum(sentence.tokens for sentence in self.sentences)


class Cutter:
    """Cuts sub-documents out of documents, so that the sizes come as often as their weights say.

    A document too short for a size gets a smaller one. What is cut from a document depends on the documents before
    it, through the sizes that they got, and on the seed.
    """

    def __init__(self, settings: SynthesisSettings, count_tokens: CountTokens) -> None:
        self._settings, self._count = settings, count_tokens
        self._segmenter = SentenceSegmenter(settings.language)
        self._made = dict.fromkeys(settings.sizes, 0)
        self._number = 0

    def cut(self, document: Document) -> Iterator[SubDocument]:
        """The sub-documents of a document; none if it is too short."""
        text = document.text
        # from the middle: the front matter of a book has other tokens
        begin = max(0, (len(text) - _SAMPLE_CHARACTERS) // 2)
        sample = readable(text[begin : begin + _SAMPLE_CHARACTERS])
        width = len(sample) / max(1, self._count(sample))  # characters of a token
        tokens, settings = len(text) / width, self._settings
        if tokens < min(settings.sizes) * _LEAST_SHARE:
            return
        digest = blake2b(f"{settings.seed}\n{text}".encode("utf-8", "replace"), digest_size=8).hexdigest()
        draw = random.Random(digest)
        held_out = draw.random() < settings.test_share
        size = self._next_size(tokens)
        slots = min(settings.per_document, max(1, int(tokens // size)))
        for slot in range(slots):
            low, high = len(text) * slot // slots, len(text) * (slot + 1) // slots
            start = draw.randint(low, max(low, high - int(size * width)))
            sentences = self._sentences(text, 0 if tokens <= size else start, high, size, width)
            if sum(sentence.tokens for sentence in sentences) < min(settings.sizes) * _LEAST_SHARE:
                continue
            first, last = sentences[0].start, sentences[-1].end
            moved = (Sentence(start - first, end - first, count) for start, end, count in sentences)
            yield SubDocument(
                self._number,
                f"{document.doc_id}@{first}",
                document.source,
                document.title,
                text[first:last],
                size,
                tuple(moved),
                held_out,
            )
            self._number += 1
            self._made[size] += 1

    def _next_size(self, tokens: float) -> int:
        """Of the sizes that a document has tokens for, the one that is most behind its weight."""
        settings = self._settings
        fitting = [size for size in settings.sizes if size <= 1.1 * tokens] or [min(settings.sizes)]
        weights = dict(zip(settings.sizes, settings.weights, strict=True))
        return min(fitting, key=lambda size: (self._made[size] / weights[size], -size))

    def _sentences(self, text: str, start: int, stop: int, size: int, width: float) -> list[Sentence]:
        """Whole sentences from ``start`` on, up to ``size`` tokens."""
        found: list[Sentence] = []
        total, reach = 0, int(1.5 * size * width) + 2_000
        units = self._segmenter.segment(text[start : min(stop, start + reach)])
        cut_off = start + reach < stop or stop < len(text)  # the last sentence may not be whole
        for number, unit in enumerate(units):
            if (number == 0 and start > 0) or (cut_off and number == len(units) - 1):
                continue
            span = start + unit.start, start + unit.end
            tokens = self._count(readable(text[slice(*span)]))
            if found and total + tokens > size:
                break
            total += tokens
            found.append(Sentence(*span, tokens))
        return found


def joined_units(sentences: tuple[Sentence, ...], least_tokens: int) -> list[tuple[int, int]]:
    """Spans of units: sentences joined until each has so many tokens; what is left over joins the last."""
    units: list[tuple[int, int]] = []
    begin, tokens = None, 0
    for sentence in sentences:
        begin = sentence.start if begin is None else begin
        tokens += sentence.tokens
        if tokens >= least_tokens:
            units.append((begin, sentence.end))
            begin, tokens = None, 0
    if begin is not None:
        end = sentences[-1].end
        if units:
            units[-1] = (units[-1][0], end)
        else:
            units.append((begin, end))
    return units
