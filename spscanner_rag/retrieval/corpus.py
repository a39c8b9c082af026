"""The corpus of a retriever: its texts and the counts of their words, as they are at one moment."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Self

from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.retrieval.joined_text import JoinedText
from spscanner_rag.retrieval.search import cut
from spscanner_rag.text.segmentation import SentenceSegmenter

ASCII_CHARACTERS_PER_TOKEN = 4
"""Of the bundled tokenizer in English: 3.3 in dialogue, 4.4 in contracts."""


class Corpus:
    """Texts and the counts of their words. Immutable: a question keeps the corpus that it began with.

    `with_texts` gives the corpus after a change. A pickle and a deep copy share or store the counts but not the
    texts, which their owner joins again; ``with_texts`` then counts nothing that was counted before.

    Sentences are counted as `SentenceSegmenter` cuts them, so that no scorer is loaded. They are valid statistics
    also for a scorer that cuts texts in another way.
    """

    def __init__(self, texts: Sequence[JoinedText] = (), counts: CollectionIndex | None = None) -> None:
        self.texts = texts
        self.keys = _keys(texts)
        self.counts = CollectionIndex() if counts is None else counts
        self.tokens = [estimated_tokens(joined.text) for joined in texts]

    @property
    def collection(self) -> CollectionIndex | None:
        """What a scorer compares scores over: the counts, or None for a single text."""
        return self.counts if len(self.texts) > 1 else None

    def with_texts(self, texts: Sequence[JoinedText]) -> "Corpus":
        """Return the corpus of these texts. Only those that are new are counted."""
        corpus = Corpus(texts, self.counts.copy())
        wanted = set(corpus.keys)
        corpus.counts.remove(*(key for key in self.counts.keys if key not in wanted))
        if len(texts) > 1:
            for key, joined in zip(corpus.keys, texts, strict=True):
                if key not in corpus.counts:
                    corpus.counts.add(key, [unit.model_text for unit in cut(SentenceSegmenter(), joined)])
        return corpus

    def ranked(self, query: str) -> list[tuple[int, float]]:
        """The first stage: indices of the texts that share a word with a query, and their scores, best first."""
        numbers = {key: number for number, key in enumerate(self.keys)}
        return [(numbers[key], score) for key, score in self.counts.best_texts(query)]

    def __reduce__(self) -> tuple[type["Corpus"], tuple[object, ...]]:
        return Corpus, ((), self.counts)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def _keys(texts: Sequence[JoinedText]) -> list[str]:
    """A digest of each text and its runs; equal texts are numbered."""
    keys: list[str] = []
    copies: dict[str, int] = {}
    for joined in texts:
        digest = sha256(joined.text.encode("utf-8", "surrogatepass"))
        digest.update(repr([run.start for run in joined.runs[1:]]).encode())
        key = digest.hexdigest()[:32]
        copies[key] = copy = copies.get(key, 0) + 1
        keys.append(key if copy == 1 else f"{key}#{copy}")
    return keys


def estimated_tokens(text: str) -> int:
    """Estimate tokens: four ASCII characters, or a UTF-8 byte of any other, are one; white space has none."""
    if not text or text.isspace():
        return 0
    n_ascii = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    n_bytes = n_ascii if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return -(-n_ascii // ASCII_CHARACTERS_PER_TOKEN) + n_bytes - n_ascii
