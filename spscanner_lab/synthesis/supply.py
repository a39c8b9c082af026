"""Cuts sub-documents from a stream of documents, and leaves unsuitable ones out."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from spscanner_lab.evidence.questions import Document
from spscanner_lab.synthesis.language_detection import LanguageDetector
from spscanner_lab.synthesis.notices import is_boilerplate
from spscanner_lab.synthesis.settings import SynthesisSettings
from spscanner_lab.synthesis.sub_documents import Sentence, SubDocument
from spscanner_lab.training.data.decontamination import SharedTextFinder, hash_of
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.surrogates import replace_surrogates
from spscanner_rag.text.token_counts import CountTokens
from spscanner_rag.text.units import Segmenter

_SAMPLE_CHARACTERS = 4_000
# a document with less than this share of the smallest size is left out
_LEAST_SHARE = 0.5
_NAMED = 20  # most documents that are named because they share text with test documents


def is_new(text: str, seen: set[int]) -> bool:
    """Note a text, ignoring case and white space.

    False if it was noted before.

    Examples
    --------
    >>> from spscanner_lab.synthesis.supply import is_new
    >>> seen = set()
    >>> is_new("It rained.", seen), is_new("It  RAINED.", seen)
    (True, False)
    """
    before = len(seen)
    seen.add(hash_of(text.split()))
    return len(seen) > before


@dataclass(slots=True)
class Supply:
    """Sub-documents of a stream of documents, one at a time.

    How often each size comes depends on its weight. A document too short for a size
    gets a smaller one. The stretches that are cut from a document depend on the seed
    and, through the sizes that came before, on earlier documents.

    Attributes
    ----------
    settings : SynthesisSettings
        Sizes and filters.
    count_tokens : callable
        Counts tokens.
    detector : LanguageDetector or None
        None takes documents in every language.
    finder : SharedTextFinder or None
        Finds text that documents share with test documents.
    documents : int
        Documents so far.
    left_out : Counter
        Documents and sub-documents that were left out, by reason.
    contaminated : list of str
        The first documents that share text with test documents.
    """

    settings: SynthesisSettings
    count_tokens: CountTokens
    detector: LanguageDetector | None = None
    finder: SharedTextFinder | None = None
    documents: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    contaminated: list[str] = field(default_factory=list)
    # sub-documents so far, of each size
    _count_by_size: Counter[int] = field(default_factory=Counter, init=False)

    def of(self, documents: Iterable[Document]) -> Iterator[SubDocument]:
        """Yield the sub-documents of documents, numbered from 0."""
        texts_seen: set[int] = set()
        names_seen: set[int] = set()
        segmenter = SentenceSegmenter(self.settings.language)
        for document in documents:
            self.documents += 1
            reason = self._reason_against(document, texts_seen)
            if reason is not None:
                self.left_out[reason] += 1
                continue
            name = _new_name(document, names_seen)
            before = self._count_by_size.total()
            yield from self._cut(replace(document, doc_id=name), segmenter)
            if self._count_by_size.total() == before:
                self.left_out["too short"] += 1

    def _reason_against(self, document: Document, texts_seen: set[int]) -> str | None:
        """Return why a document is left out, or None."""
        settings = self.settings
        if not document.text.strip():
            return "empty"
        if not is_new(document.text, texts_seen):
            return "a duplicate"
        if self.detector is not None:
            probability = self.detector.probability(document.text, settings.language)
            if probability < settings.language_probability:
                return "in another language"
        shared = None
        if self.finder is not None:
            shared = self.finder.find(document)
        if shared is None:
            return None
        if len(self.contaminated) < _NAMED:
            self.contaminated.append(
                f"{document.doc_id}: {shared.share:.1%} of its sentences, most with"
                f" {shared.held_out_doc_id}: {shared.example:.200}"
            )
        return "shares text with a test document"

    def _cut(self, document: Document, segmenter: Segmenter) -> Iterator[SubDocument]:
        """Yield the sub-documents of a document, none if it is too short."""
        text = document.text
        settings = self.settings
        token_width = self._token_width(text)
        tokens = len(text) / token_width
        least_tokens = min(settings.sizes) * _LEAST_SHARE
        if tokens < least_tokens:
            return
        seed = f"{settings.seed}\n{text}".encode("utf-8", "replace")
        random_source = random.Random(blake2b(seed, digest_size=8).hexdigest())
        held_out = random_source.random() < settings.test_share
        size = self._next_size(tokens)
        slots = min(settings.per_document, max(1, int(tokens // size)))
        for slot in range(slots):
            low = len(text) * slot // slots
            high = len(text) * (slot + 1) // slots
            start = random_source.randint(low, max(low, high - int(size * token_width)))
            if tokens <= size:
                start = 0
            stop = min(high, start + int(1.5 * size * token_width) + 2_000)
            sentences = self._sentences(text, start, stop, size, segmenter)
            if sum(sentence.tokens for sentence in sentences) < least_tokens:
                continue
            number = self._count_by_size.total()
            self._count_by_size[size] += 1
            spans = [(begin, end) for begin, end, _ in sentences]
            if settings.boilerplate and is_boilerplate(text, spans):
                self.left_out["licences and copyright notices"] += 1
                continue
            yield _sub_document(document, sentences, number, size, held_out)

    def _token_width(self, text: str) -> float:
        """Return about how many characters a token of a text has."""
        # from the middle, since the tokens of a book's front matter differ
        start = max(0, (len(text) - _SAMPLE_CHARACTERS) // 2)
        sample = replace_surrogates(text[start : start + _SAMPLE_CHARACTERS])
        return len(sample) / max(1, self.count_tokens(sample))

    def _next_size(self, tokens: float) -> int:
        """Return the size that is furthest behind its weight.

        Only sizes that the document is long enough for are considered.
        """
        sizes = self.settings.sizes
        weights = dict(zip(sizes, self.settings.weights, strict=True))
        fitting = [size for size in sizes if size <= 1.1 * tokens]
        if not fitting:
            return min(sizes)

        def progress_of(size: int) -> tuple[float, int]:
            return self._count_by_size[size] / weights[size], -size

        return min(fitting, key=progress_of)

    def _sentences(
        self, text: str, start: int, stop: int, size: int, segmenter: Segmenter
    ) -> list[Sentence]:
        """Return as many sentences of a stretch as fit into ``size`` tokens.

        Sentences are whole, and there is at least one.
        """
        units = list(segmenter.segment(text[start:stop]))
        if stop < len(text):
            units = units[:-1]  # it may be cut off
        if start > 0:
            units = units[1:]
        sentences: list[Sentence] = []
        total_tokens = 0
        for unit in units:
            begin = start + unit.start
            end = start + unit.end
            tokens = self.count_tokens(replace_surrogates(text[begin:end]))
            if sentences and total_tokens + tokens > size:
                break
            total_tokens += tokens
            sentences.append(Sentence(begin, end, tokens))
        return sentences


def _new_name(document: Document, names_seen: set[int]) -> str:
    """Return a document's id, with a number if another of its source has the same."""
    name = document.doc_id
    number = 1
    while not is_new(f"{document.source}\n{name}", names_seen):
        number += 1
        name = f"{document.doc_id}~{number}"
    return name


def _sub_document(
    document: Document,
    sentences: list[Sentence],
    number: int,
    size: int,
    held_out: bool,
) -> SubDocument:
    """Return the stretch of a document that these sentences, with its spans, cover."""
    first = sentences[0].start
    last = sentences[-1].end
    moved_sentences = []
    for start, end, tokens in sentences:
        moved_sentences.append(Sentence(start - first, end - first, tokens))
    return SubDocument(
        number,
        f"{document.doc_id}@{first}",
        document.source,
        document.title,
        document.text[first:last],
        size,
        tuple(moved_sentences),
        held_out,
    )
