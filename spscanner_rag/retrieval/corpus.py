"""The corpus of a retriever: its texts and the counts of their words, as they are at one moment."""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.retrieval.joined_text import JoinedText
from spscanner_rag.retrieval.search import cut
from spscanner_rag.scorers import Cancelled, never, stop_if
from spscanner_rag.text.folding import fold_texts
from spscanner_rag.text.segmentation import SentenceSegmenter

if TYPE_CHECKING:  # these import torch, which a corpus without an encoder does not need
    from spscanner_rag.encoder.meaning import Meaning
    from spscanner_rag.encoder.sentences import SentenceVectors

ASCII_CHARACTERS_PER_TOKEN = 4  # of the bundled tokenizer in English: 3.3 in dialogue, 4.4 in contracts


class Corpus:
    """Texts and the counts of their words. Immutable: `with_texts` gives the corpus after a change.

    A pickle and a deep copy have the counts but not the texts, which their owner joins again; `with_texts` then
    counts nothing twice. Sentences are counted as `SentenceSegmenter` cuts them, so that no scorer is loaded.
    """

    def __init__(
        self,
        texts: Sequence[JoinedText] = (),
        counts: CollectionIndex | None = None,
        encoder: str = "",
        vectors: "Mapping[str, SentenceVectors] | None" = None,
    ) -> None:
        self.texts = texts
        self._digests: dict[str, str] = {}  # of the sentences of texts, by their keys
        self.encoder = encoder  # the digest of what made the vectors
        self.vectors = dict(vectors or {})  # of the sentences of texts, by their keys; only added to
        self.keys = _keys(texts)
        self.counts = CollectionIndex() if counts is None else counts
        self.tokens = [estimated_tokens(joined.text) for joined in texts]

    @property
    def collection(self) -> CollectionIndex | None:
        """What a scorer compares scores over: the counts, or None for a single text."""
        return self.counts if len(self.texts) > 1 else None

    def with_texts(self, texts: Sequence[JoinedText]) -> "Corpus":
        """Return the corpus of these texts. Only those that are new are counted."""
        corpus = Corpus(texts, self.counts.copy(), self.encoder, self.vectors.copy())
        wanted = set(corpus.keys)
        corpus.vectors = {key: own for key, own in corpus.vectors.items() if key in wanted}
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
        return Corpus, ((), self.counts, self.encoder, self.vectors)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def encoded(self, meaning: "Meaning", numbers: Iterable[int], cancelled: Cancelled = never) -> None:
        """Make the vectors of some texts that have none, and let ``meaning`` keep them for a scan."""
        from spscanner_rag.encoder.sentences import digest_of

        for number in numbers:
            vectors, key = self._vectors(number, meaning, cancelled), self.keys[number]
            if key not in self._digests:  # else it would be cut again for every question
                self._digests[key] = digest_of(self._sentences(number))
            meaning.keep(self._digests[key], vectors)

    def knows(self, number: int, meaning: "Meaning") -> bool:
        """True if the vectors of a text are here, made by this encoder."""
        return self.encoder == meaning.encoder.digest and self.keys[number] in self.vectors

    def meant(
        self, query: str, meaning: "Meaning", numbers: Iterable[int], cancelled: Cancelled = never
    ) -> dict[int, float]:
        """For some texts, what the cosines of a query add to the logit of their best sentence."""
        found = {}
        for number in numbers:
            cosines = meaning.cosines(query, self._vectors(number, meaning, cancelled))
            logits = meaning.weights.logits(np.zeros_like(cosines), cosines)
            found[number] = float(logits.max(initial=-np.inf))
        return found

    def _vectors(self, number: int, meaning: "Meaning", cancelled: Cancelled) -> "SentenceVectors":
        """The vectors of a text, which are made if another encoder made those that are here."""
        if self.encoder != meaning.encoder.digest:
            self.encoder, self.vectors = meaning.encoder.digest, {}
        key = self.keys[number]
        if key not in self.vectors:
            stop_if(cancelled, f"after {len(self.vectors)} texts were encoded")
            own = self._sentences(number)
            self.vectors[key] = meaning.vectors(own, after_step=lambda tokens: stop_if(cancelled))
        return self.vectors[key]

    def _sentences(self, number: int) -> Sequence[str]:
        return fold_texts([unit.model_text for unit in cut(SentenceSegmenter(), self.texts[number])])


def vectors_to_arrays(encoder: str, vectors: "Mapping[str, SentenceVectors]") -> dict[str, NDArray[Any]]:
    """Arrays that `vectors_from_arrays` reads back; none without vectors."""
    if not vectors:
        return {}
    made = list(vectors.values())
    width = max(own.rows.shape[1] for own in made)
    return {
        "vector_rows": np.concatenate(
            [np.zeros((0, width), np.int8), *(v.rows for v in made if len(v.rows))]
        ),
        "vector_scales": np.concatenate([np.zeros(0, np.float16), *(own.scales for own in made)]),
        "vector_counts": np.array([len(own.scales) for own in made], np.int64),
        "vector_keys": np.array([f"{encoder} {key}" for key in vectors]),
    }


def vectors_from_arrays(arrays: Mapping[str, NDArray[Any]]) -> "tuple[str, dict[str, SentenceVectors]]":
    """The encoder's digest and the vectors, from a file; ``ValueError`` for arrays that do not fit together."""
    if "vector_keys" not in arrays:
        return "", {}
    from spscanner_rag.encoder.sentences import SentenceVectors

    rows, scales = arrays["vector_rows"], arrays["vector_scales"]
    counts, keys = arrays["vector_counts"], arrays["vector_keys"].tolist()
    kinds = zip((rows, scales, counts), (np.int8, np.float16, np.int64), strict=True)
    fit = rows.ndim == 2 and len(counts) == len(keys) and not (counts < 0).any()
    if not fit or any(array.dtype != kind for array, kind in kinds):
        raise ValueError("the vectors of its sentences have another form")
    stops = np.cumsum(counts)
    if len(rows) != len(scales) or (len(stops) and int(stops[-1]) != len(rows)):
        raise ValueError("the vectors of its sentences are more or fewer than their numbers say")
    names = [str(name).rpartition(" ") for name in keys]
    parts = zip(names, (stops - counts).tolist(), stops.tolist(), strict=True)
    held = {key: SentenceVectors(rows[start:stop], scales[start:stop]) for (_, _, key), start, stop in parts}
    return (names[0][0] if names else ""), held


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
