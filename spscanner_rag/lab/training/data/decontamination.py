"""Training documents that share text with held-out ones, by a rule based on the paper's.

The paper drops a training document when more than 1 % of its sentences also occur in some held-out document. It
counts every sentence; here only those of ten words or more count. `SentenceSegmenter` cuts them, case and the kind
and amount of white space do not matter, and a repeated sentence counts once.

Two rules are added. A training document is also dropped when more than 1 % of one held-out document's sentences
occur in it, which finds a short held-out document inside a long training document; and when its whole text is that
of a held-out document, whatever its sentences are.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b

from spscanner_rag.lab.evidence.questions import Document
from spscanner_rag.lab.training import Notify
from spscanner_rag.text.segmentation import SentenceSegmenter

MIN_WORDS = 10
"""Shorter sentences ("He was born in Paris.") also occur in documents with nothing else in common."""

MAX_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class SharedDocument:
    """A training document that shares text with held-out documents.

    Attributes
    ----------
    doc_id, source
        The training document.
    share
        Share of its long sentences that occur in any held-out document; 1 if the whole text is that of one.
    held_out_doc_id
        The held-out document that it shares most sentences with, the first of several.
    held_out_share
        The largest share of one held-out document's long sentences that occur in the training document.
    example
        A shared sentence as the training document has it.
    """

    doc_id: str
    source: str
    share: float
    held_out_doc_id: str
    held_out_share: float
    example: str


def shared_documents(
    training: Iterable[Document],
    held_out: Iterable[Document],
    *,
    min_words: int = MIN_WORDS,
    max_share: float = MAX_SHARE,
) -> list[SharedDocument]:
    """Training documents to drop, in their order, by the rules of this module.

    Parameters
    ----------
    training : iterable of Document
        Read once; nothing of them is kept.
    held_out : iterable of Document
        Read once; hashes of their sentences are kept, not texts.
    min_words : int, default 10
        Shorter sentences, in words between white space, do not count; 1 counts every sentence, as the paper does.
    max_share : float, default 0.01
        Documents with a larger share, in either direction, are dropped.

    Raises
    ------
    ValueError
        If ``min_words`` is below 1 or ``max_share`` is not from 0 to below 1.
    """
    finder = SharedTextFinder(held_out, min_words=min_words, max_share=max_share)
    if not finder.held_out_documents:  # spares reading the training documents
        return []
    return [shared for shared in map(finder.find, training) if shared is not None]


class SharedTextFinder:
    """Finds what single documents share with held-out ones; `shared_documents` says what the arguments mean.

    Raises
    ------
    ValueError
        If ``min_words`` is below 1 or ``max_share`` is not from 0 to below 1.
    """

    def __init__(
        self, held_out: Iterable[Document], *, min_words: int = MIN_WORDS, max_share: float = MAX_SHARE
    ) -> None:
        if min_words < 1:
            raise ValueError(f"min_words is {min_words}; expected at least 1, such as {MIN_WORDS}")
        if not 0 <= max_share < 1:
            raise ValueError(f"max_share is {max_share}; expected a share below 1, such as {MAX_SHARE}")
        self._index, self._max_share = _HeldOutIndex(held_out, min_words), max_share

    @property
    def held_out_documents(self) -> int:
        """Number of held-out documents."""
        return len(self._index.doc_ids)

    def find(self, document: Document) -> SharedDocument | None:
        """What a document shares with held-out ones if that is too much; else None."""
        shared = self._index.shared(document)
        too_much = shared is not None and max(shared.share, shared.held_out_share) > self._max_share
        return shared if too_much else None


def find_shared(
    training: Callable[[], Iterable[Document]], held_out: Iterable[Document], notify: Notify
) -> dict[tuple[str, str], SharedDocument]:
    """`shared_documents` by source and id, with a message; each call of ``training`` reads the documents again.

    Raises ``ValueError`` if no training document is left.
    """
    found = shared_documents(training(), held_out)
    shared = {(document.source, document.doc_id): document for document in found}
    if not shared:
        return shared
    first = found[0]
    if all((document.source, document.doc_id) in shared for document in training()):
        raise ValueError(
            f"every training document shares text with documents to validate on, such as {first.doc_id!r} with "
            f"{first.held_out_doc_id!r}: {first.example!r}; expected other documents to validate on"
        )
    notify(
        f"{len(found):,} documents are not trained on: they share text with documents to validate on; the "
        f"first is {first.doc_id!r}, with {first.held_out_doc_id!r}: {first.example!r}"
    )
    return shared


class _HeldOutIndex:
    """Hashes of the long sentences and of the texts of held-out documents."""

    def __init__(self, documents: Iterable[Document], min_words: int) -> None:
        self._min_words = min_words
        self._segmenter = SentenceSegmenter()
        self.doc_ids: list[str] = []
        self._sizes: list[int] = []  # distinct long sentences of each document
        self._holders: dict[int, list[int]] = {}  # sentence: numbers of the documents that have it
        self._texts: dict[int, int] = {}  # text: number of the first document with it
        for number, document in enumerate(documents):
            sentences = self._long_sentences(document.text)
            self.doc_ids.append(document.doc_id)
            self._sizes.append(len(sentences))
            self._texts.setdefault(_hash(document.text.split()), number)
            for sentence in sentences:
                self._holders.setdefault(sentence, []).append(number)

    def shared(self, document: Document) -> SharedDocument | None:
        """What a training document has in common with the held-out ones; None if nothing."""
        words = document.text.split()
        same = self._texts.get(_hash(words)) if words else None
        if same is not None:
            example = next(self._sentences(document.text))
            return SharedDocument(document.doc_id, document.source, 1.0, self.doc_ids[same], 1.0, example)
        sentences = self._long_sentences(document.text)
        common = [sentence for sentence in sentences if sentence in self._holders]
        if not common:
            return None
        holders = Counter(number for sentence in common for number in self._holders[sentence])
        most = min(holders, key=lambda number: (-holders[number], number))
        return SharedDocument(
            document.doc_id,
            document.source,
            share=len(common) / len(sentences),
            held_out_doc_id=self.doc_ids[most],
            held_out_share=max(shared / self._sizes[number] for number, shared in holders.items()),
            example=next(sentences[sentence] for sentence in common if most in self._holders[sentence]),
        )

    def _long_sentences(self, text: str) -> dict[int, str]:
        """Distinct long sentences by their hashes, each as the text has it first."""
        found: dict[int, str] = {}
        for sentence in self._sentences(text):
            words = sentence.split()
            if len(words) >= self._min_words:
                found.setdefault(_hash(words), sentence)
        return found

    def _sentences(self, text: str) -> Iterator[str]:
        return (text[unit.start : unit.end] for unit in self._segmenter.segment(text))


def _hash(words: Iterable[str]) -> int:
    """Hash words, ignoring case; of 10^6 and 10^5 texts two have the same 64 bits by chance once in 10^8 runs."""
    normalized = " ".join(words).casefold()
    digest = blake2b(normalized.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")
