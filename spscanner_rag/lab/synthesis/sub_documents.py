"""Random stretches of documents, of a few sizes in tokens, and the documents that no data is made from."""

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, NamedTuple

from spscanner_rag.lab.evidence.questions import Document
from spscanner_rag.lab.synthesis.settings import SynthesisSettings
from spscanner_rag.lab.training.data.decontamination import SharedTextFinder, hash_of
from spscanner_rag.text.extras import needed
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.token_counts import CountTokens
from spscanner_rag.text.units import Segmenter, readable

_SAMPLE_CHARACTERS = 4_000
_LEAST_SHARE = 0.5  # a document may have this share of the smallest size; a shorter one is left out
_PART_CHARACTERS = 1_500
_BOILERPLATE_SHARE = 0.15
_MISTAKEN = 0.5
"""A question counts as one in another language from this probability on: short texts are hard to tell."""
_NAMED = 20  # of the documents that share text with test documents

_BOILERPLATE = re.compile(
    r"\ball rights reserved\b|\bcopyright\b\s*(?:\(c\)|©|\d{4}|holders?\b|notice\b|owners?\b)|©\s*\d{4}|"
    r"\bpermission is hereby granted\b|\bwithout warrant(?:y|ies)\b|\bmerchantability\b|"
    r"\blicen[sc]ed under\b|\bthis licen[sc]e\b|\bthe licen[sc]e\b.{0,40}\b(?:terms|agreement|copy)\b|"
    r"\bproject gutenberg\b|\bcreative commons\b|\b(?:gnu|apache|mit|bsd)\b.{0,20}\blicen[sc]e\b|"
    r"\bterms of (?:use|service)\b|\bprivacy policy\b|\bisbn\b",
    re.IGNORECASE,
)
_NOTICE = re.compile(
    r"\b(?:copyright|licen[sc]e notice|licensing terms|all rights reserved)\b", re.IGNORECASE
)


class Sentence(NamedTuple):
    """A sentence of a sub-document: its span and its number of tokens."""

    start: int
    end: int
    tokens: int

    @property
    def span(self) -> tuple[int, int]:
        """Start and end."""
        return self.start, self.end


@dataclass(frozen=True, slots=True)
class SubDocument:
    """A stretch of a document."""

    number: int  # from 0, in the order of reading
    doc_id: str  # that of the document with the place of the first character after it
    source: str
    title: str
    text: str
    size: int  # wanted, in tokens
    sentences: tuple[Sentence, ...]
    held_out: bool = False  # its example belongs to the test file

    @property
    def tokens(self) -> int:
        """Number of tokens of the sentences."""
        return sum(sentence.tokens for sentence in self.sentences)


class LanguageDetector:
    """Finds the language of a text with py3langid, which works offline."""

    def __init__(self) -> None:
        owner = "the language filter (--language-probability 0 leaves it out)"
        library = needed("py3langid.langid", owner, "synthesize")
        self._model: Any = library.LanguageIdentifier.from_model_file(library.MODEL_FILE, norm_probs=True)

    def probability(self, text: str, language: str) -> float:
        """Return the probability that a text is in a language; long texts are read at three places."""
        return float(dict(self._model.rank(_parts(text))).get(language, 0.0))

    def is_other(self, question: str, language: str) -> bool:
        """True if a question is clearly in another language."""
        found, probability = self._model.classify(question)
        return found != language and float(probability) >= _MISTAKEN


def is_boilerplate(text: str, spans: Sequence[tuple[int, int]]) -> bool:
    """True if many sentences of a text mention licences and copyright."""
    if not spans:
        return False
    found = sum(bool(_BOILERPLATE.search(text, *span)) for span in spans)
    return found > _BOILERPLATE_SHARE * len(spans)


def is_about_a_notice(text: str) -> bool:
    """True if a connection or a question is about a licence or copyright notice."""
    return bool(_NOTICE.search(text) or _BOILERPLATE.search(text))


def is_new(text: str, seen: set[int]) -> bool:
    """Note a text, of which case and white space do not matter; False if it was noted before."""
    before = len(seen)
    seen.add(hash_of(text.split()))
    return len(seen) > before


def _parts(text: str) -> str:
    if len(text) <= 3 * _PART_CHARACTERS:
        return text
    middle = len(text) // 2
    return "\n".join(
        (text[:_PART_CHARACTERS], text[middle : middle + _PART_CHARACTERS], text[-_PART_CHARACTERS:])
    )


@dataclass(slots=True)
class Supply:
    """Sub-documents of a stream of documents, one at a time, whose sizes come as often as their weights say.

    A document too short for a size gets a smaller one. What is cut from a document depends on the documents before
    it, through the sizes that they got, and on the seed.
    """

    settings: SynthesisSettings
    count_tokens: CountTokens
    detector: LanguageDetector | None = None  # None takes documents in every language
    finder: SharedTextFinder | None = None  # of what documents share with test documents
    documents: int = 0  # read so far
    left_out: Counter[str] = field(default_factory=Counter)  # documents and sub-documents, by reason
    contaminated: list[str] = field(default_factory=list)  # the first that share text with test documents
    _made: Counter[int] = field(default_factory=Counter, init=False)  # sub-documents of each size

    def of(self, documents: Iterable[Document]) -> Iterator[SubDocument]:
        """Yield the sub-documents of documents, numbered from 0."""
        seen, names, segmenter = set[int](), set[int](), SentenceSegmenter(self.settings.language)
        for document in documents:
            self.documents += 1
            if reason := self._reason(document, seen):
                self.left_out[reason] += 1
                continue
            name, number = document.doc_id, 1
            while not is_new(f"{document.source}\n{name}", names):  # another document has the same id
                number += 1
                name = f"{document.doc_id}~{number}"
            before = self._made.total()
            yield from self._cut(replace(document, doc_id=name), segmenter)
            if self._made.total() == before:
                self.left_out["too short"] += 1

    def _reason(self, document: Document, seen: set[int]) -> str | None:
        settings = self.settings
        if not document.text.strip():
            return "empty"
        if not is_new(document.text, seen):
            return "a duplicate"
        if self.detector is not None:
            probability = self.detector.probability(document.text, settings.language)
            if probability < settings.language_probability:
                return "in another language"
        if self.finder is not None and (shared := self.finder.find(document)) is not None:
            if len(self.contaminated) < _NAMED:
                self.contaminated.append(
                    f"{document.doc_id}: {shared.share:.1%} of its sentences, most with "
                    f"{shared.held_out_doc_id}: {shared.example:.200}"
                )
            return "shares text with a test document"
        return None

    def _cut(self, document: Document, segmenter: Segmenter) -> Iterator[SubDocument]:
        """The sub-documents of a document; none if it is too short."""
        text = document.text
        # from the middle: the front matter of a book has other tokens
        begin = max(0, (len(text) - _SAMPLE_CHARACTERS) // 2)
        sample = readable(text[begin : begin + _SAMPLE_CHARACTERS])
        width = len(sample) / max(1, self.count_tokens(sample))  # characters of a token
        tokens, settings = len(text) / width, self.settings
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
            reach = int(1.5 * size * width) + 2_000
            sentences = self._sentences(text, 0 if tokens <= size else start, high, size, reach, segmenter)
            if sum(sentence.tokens for sentence in sentences) < min(settings.sizes) * _LEAST_SHARE:
                continue
            first, last = sentences[0].start, sentences[-1].end
            number = self._made.total()
            self._made[size] += 1
            if settings.boilerplate and is_boilerplate(text, [sentence.span for sentence in sentences]):
                self.left_out["licences and copyright notices"] += 1
                continue
            moved = tuple(Sentence(start - first, end - first, count) for start, end, count in sentences)
            name, own = f"{document.doc_id}@{first}", text[first:last]
            yield SubDocument(number, name, document.source, document.title, own, size, moved, held_out)

    def _next_size(self, tokens: float) -> int:
        """Of the sizes that a document has tokens for, the one that is most behind its weight."""
        settings = self.settings
        fitting = [size for size in settings.sizes if size <= 1.1 * tokens] or [min(settings.sizes)]
        weights = dict(zip(settings.sizes, settings.weights, strict=True))
        return min(fitting, key=lambda size: (self._made[size] / weights[size], -size))

    def _sentences(
        self, text: str, start: int, stop: int, size: int, reach: int, segmenter: Segmenter
    ) -> list[Sentence]:
        found: list[Sentence] = []
        total = 0
        units = segmenter.segment(text[start : min(stop, start + reach)])
        cut_off = start + reach < stop or stop < len(text)  # the last sentence may not be whole
        for number, unit in enumerate(units):
            if (number == 0 and start > 0) or (cut_off and number == len(units) - 1):
                continue
            span = start + unit.start, start + unit.end
            tokens = self.count_tokens(readable(text[slice(*span)]))
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
        start = units.pop()[0] if units else begin
        units.append((start, sentences[-1].end))
    return units
