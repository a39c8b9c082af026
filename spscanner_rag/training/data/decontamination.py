"""Training documents that share text with documents kept for validation: the paper's rule of sentence overlap.

A training document is shared when more than 1 % of its sentences of ten words or more also stand in some held-out
document. Sentences are cut by the package's `SentenceSegmenter` and compared without regard to case and to the
kind and amount of white space; one that a document repeats counts once.

Two things are added to the rule. It is applied the other way round as well: more than 1 % of one held-out
document's sentences stand in the training document, which is how a short held-out document inside a long training
document shows. And a training document whose whole text is that of a held-out document is shared whatever its
sentences are.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b

from spscanner_rag.evidence.questions import Document
from spscanner_rag.text.segmentation import SentenceSegmenter

MIN_WORDS = 10
"""Shorter sentences ("He was born in Paris.") are the same in documents that have nothing else in common."""

MAX_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class SharedDocument:
    """A training document that shares text with held-out documents.

    Attributes
    ----------
    doc_id, source
        Of the training document.
    share
        Of its long sentences, those that stand in any held-out document; 1 for the whole text of one.
    held_out_doc_id
        The held-out document that it shares most sentences with, the first of several.
    held_out_share
        Of the long sentences of one held-out document, those that stand in the training document: the largest
        such share.
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
    """Training documents to be dropped, by the rule of this module.

    Parameters
    ----------
    training : iterable of Document
        Read once; nothing of them is kept.
    held_out : iterable of Document
        Read once; hashes of their sentences are kept, not texts.
    min_words : int, default 10
        Sentences of fewer words, counted between white space, are left out of account.
    max_share : float, default 0.01
        The largest share, in either direction, that is no reason to drop a document.

    Returns
    -------
    list of SharedDocument
        In the order of the training documents.

    Raises
    ------
    ValueError
        If ``min_words`` is below 1 or ``max_share`` is not between 0 and 1 (0 is allowed).
    """
    if min_words < 1:
        raise ValueError(f"min_words is {min_words}; expected at least 1, such as {MIN_WORDS}")
    if not 0 <= max_share < 1:
        raise ValueError(f"max_share is {max_share}; expected a share below 1, such as {MAX_SHARE}")
    index = _HeldOutIndex(held_out, min_words)
    if not index.documents:
        return []
    found = (index.shared(document) for document in training)
    return [shared for shared in found if shared and max(shared.share, shared.held_out_share) > max_share]


def find_shared(
    training: Callable[[], Iterable[Document]],
    held_out: Iterable[Document],
    max_share: float,
    notify: Callable[[str], object],
) -> dict[tuple[str, str], SharedDocument]:
    """`shared_documents` by source and name, with a message about them; ``training`` gives them again each time.

    Raises
    ------
    ValueError
        If no training document would be left.
    """
    found = shared_documents(training(), held_out, max_share=max_share)
    shared = {(document.source, document.doc_id): document for document in found}
    if not shared:
        return shared
    first = found[0]
    if all((document.source, document.doc_id) in shared for document in training()):
        raise ValueError(
            f"every training document shares text with documents to validate on, such as {first.doc_id!r} with "
            f"{first.held_out_doc_id!r}: {first.example!r}; expected others to validate on"
        )
    notify(
        f"{len(found):,} documents are not trained on, for they share text with documents to validate on; the "
        f"first is {first.doc_id!r}, with {first.held_out_doc_id!r}: {first.example!r}"
    )
    return shared


class _HeldOutIndex:
    """Hashes of the long sentences and of the texts of held-out documents."""

    def __init__(self, documents: Iterable[Document], min_words: int) -> None:
        self._min_words = min_words
        self._segmenter = SentenceSegmenter()
        self.documents = 0
        self._doc_ids: list[str] = []
        self._sizes: list[int] = []  # distinct long sentences of each document
        self._holders: dict[int, list[int]] = {}  # sentence: numbers of the documents that have it
        self._texts: dict[int, int] = {}  # text: number of the first document that is it
        for number, document in enumerate(documents):
            sentences = self._long_sentences(document.text)
            self.documents += 1
            self._doc_ids.append(document.doc_id)
            self._sizes.append(len(sentences))
            self._texts.setdefault(_hash(document.text.split()), number)
            for sentence in sentences:
                self._holders.setdefault(sentence, []).append(number)

    def shared(self, document: Document) -> SharedDocument | None:
        """What a training document has in common with the held-out ones; None if that is nothing."""
        words = document.text.split()
        same = self._texts.get(_hash(words)) if words else None
        if same is not None:
            example = next(self._sentences(document.text))
            return SharedDocument(document.doc_id, document.source, 1.0, self._doc_ids[same], 1.0, example)
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
            held_out_doc_id=self._doc_ids[most],
            held_out_share=max(shared / self._sizes[number] for number, shared in holders.items()),
            example=next(sentences[sentence] for sentence in common if most in self._holders[sentence]),
        )

    def _long_sentences(self, text: str) -> dict[int, str]:
        """Distinct long sentences by their hashes, each as it stands where it occurs first."""
        found: dict[int, str] = {}
        for sentence in self._sentences(text):
            words = sentence.split()
            if len(words) >= self._min_words:
                found.setdefault(_hash(words), sentence)
        return found

    def _sentences(self, text: str) -> Iterator[str]:
        return (text[unit.start : unit.end] for unit in self._segmenter.segment(text))


def _hash(words: Iterable[str]) -> int:
    """Of words without regard to case; 64 bits, so that 10^6 and 10^5 match by chance once in 10^8 runs."""
    normalized = " ".join(words).casefold()
    digest = blake2b(normalized.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")
