"""Training documents that share text with held-out ones.

The rule is based on the paper's, which drops a training document when more than 1 % of
its sentences also occur in some held-out document. The paper counts every sentence;
here only those of ten words or more count. `SentenceSegmenter` finds the sentences.
Case and the kind and amount of white space do not matter, and a repeated sentence
counts once.

There are two more rules. A training document is also dropped when more than 1 % of one
held-out document's sentences occur in it, which finds a short held-out document inside
a long training document; and when its whole text equals that of a held-out document,
however short the sentences.
"""

from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

from spscanner_lab.evidence.questions import Document
from spscanner_lab.training import Notify
from spscanner_rag.text.segmentation import SentenceSegmenter

MIN_WORDS = 10
"""Shorter sentences ("He was born in Paris.") also occur in documents with nothing
else in common."""

MAX_SHARE = 0.01


class SharedDocument(NamedTuple):
    """A training document that shares text with held-out documents."""

    doc_id: str
    source: str
    # of its long sentences that are in any held-out document; 1 if a whole text is the
    # same
    share: float
    # the (first) held-out document that it shares most sentences with
    held_out_doc_id: str
    example: str  # a shared sentence as the training document has it


class SharedTextFinder:
    """Finds what a document shares with held-out ones.

    Of the held-out documents it stores only hashes of the sentences.

    A document with a larger share than `MAX_SHARE`, in either direction, shares too
    much.
    """

    def __init__(self, held_out: Iterable[Document]) -> None:
        self._segmenter = SentenceSegmenter()
        self._doc_ids: list[str] = []
        self._sizes: list[int] = []  # distinct long sentences of each document
        # hash of a sentence: numbers of the documents with it
        self._holders: dict[int, list[int]] = {}
        # hash of a text: number of the first document with it
        self._texts: dict[int, int] = {}
        for number, document in enumerate(held_out):
            sentences = self._long_sentences(document.text)
            self._doc_ids.append(document.doc_id)
            self._sizes.append(len(sentences))
            self._texts.setdefault(hash_of(document.text.split()), number)
            for sentence in sentences:
                self._holders.setdefault(sentence, []).append(number)

    @property
    def held_out_documents(self) -> int:
        """The number of held-out documents."""
        return len(self._doc_ids)

    def find(self, document: Document) -> SharedDocument | None:
        """What a document shares with held-out ones, or None if that is little."""
        words = document.text.split()
        same = self._texts.get(hash_of(words)) if words else None
        if same is not None:
            first = self._segmenter.segment(document.text)[0]
            example = document.text[first.start : first.end]
            return SharedDocument(
                document.doc_id, document.source, 1.0, self._doc_ids[same], example
            )
        sentences = self._long_sentences(document.text)
        common = [sentence for sentence in sentences if sentence in self._holders]
        if not common:
            return None
        # by the number of a held-out document: how many of the sentences it has
        holders: Counter[int] = Counter()
        for sentence in common:
            holders.update(self._holders[sentence])
        nearest = min(holders, key=lambda number: (-holders[number], number))
        share = len(common) / len(sentences)
        held_out_shares = []
        for number, shared in holders.items():
            held_out_shares.append(shared / self._sizes[number])
        if max(share, *held_out_shares) <= MAX_SHARE:
            return None
        in_nearest = filter(lambda sentence: nearest in self._holders[sentence], common)
        example = sentences[next(in_nearest)]
        return SharedDocument(
            document.doc_id, document.source, share, self._doc_ids[nearest], example
        )

    def _long_sentences(self, text: str) -> dict[int, str]:
        """Distinct long sentences by their hashes, as they first occur in the text."""
        sentences: dict[int, str] = {}
        for unit in self._segmenter.segment(text):
            sentence = text[unit.start : unit.end]
            words = sentence.split()
            if len(words) >= MIN_WORDS:
                sentences.setdefault(hash_of(words), sentence)
        return sentences


def find_shared(
    training: Iterable[Document], held_out: Iterable[Document], notify: Notify
) -> dict[tuple[str, str], SharedDocument]:
    """Find the training documents to drop, by source and id, and report them.

    ``ValueError`` if none is left.
    """
    finder = SharedTextFinder(held_out)
    shared: dict[tuple[str, str], SharedDocument] = {}
    # without held-out documents the training documents need not be read
    if not finder.held_out_documents:
        return shared
    all_share = True
    for document in training:
        sharing = finder.find(document)
        if sharing is None:
            all_share = False
        else:
            shared[sharing.source, sharing.doc_id] = sharing
    if not shared:
        return shared
    first = next(iter(shared.values()))
    example = f"{first.doc_id!r}, with {first.held_out_doc_id!r}: {first.example!r}"
    if all_share:
        raise ValueError(
            "every training document shares text with validation documents, such as"
            f" {example}; expected other validation documents"
        )
    notify(
        f"{len(shared):,} documents are not trained on: they share text with validation"
        f" documents; the first is {example}"
    )
    return shared


def hash_of(words: Iterable[str]) -> int:
    """Hash words to 64 bits, ignoring case.

    Between 10^6 and 10^5 texts, hashes collide once in 10^8 runs.
    """
    normalized = " ".join(words).casefold()
    encoded = normalized.encode("utf-8", "surrogatepass")
    digest = blake2b(encoded, digest_size=8).digest()
    return int.from_bytes(digest, "little")
