"""How probably documents say what a claim says."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.apps.verifying.claim_features import ClaimFeatures, features_of
from spscanner_rag.lexical.words import stems_of

if TYPE_CHECKING:
    from spscanner_rag.scan.prepared_document import PreparedDocument
    from spscanner_rag.scanner import Scanner

SUPPORTED: Final = 0.5
"""The least support of a claim that counts as supported."""

_BIAS: Final = -1.85
_WEIGHTS: Final = {
    "cosine": 1.56,
    "coverage": 2.24,
    "missing_numbers": -0.89,
    "missing_names": -0.73,
    "denial": -2.34,
}
_NEAREST = 12  # sentences of a document by cosine; of these, coverage also counts
_COVERAGE = 0.5  # its weight beside a cosine
_SENTENCES = 3  # the likeliest of a document, read with their neighbours
_DOCUMENTS = 3  # the likeliest, besides those that are cited


class ClaimEvidence(NamedTuple):
    """The sentences of a document that are likest to say a claim."""

    document: int
    support: float  # 0 to 1
    spans: tuple[tuple[int, int], ...]  # the likeliest sentence first

    @property
    def is_enough(self) -> bool:
        """Whether the claim counts as supported."""
        return self.support >= SUPPORTED


class ClaimReader:
    """Looks claims up in documents.

    Parameters
    ----------
    scanner : Scanner
        One with an encoder, such as the bundled one.
    documents : sequence of PreparedDocument
        What the scanner prepared.

    Raises
    ------
    ValueError
        For a scanner without an encoder.
    """

    def __init__(
        self, scanner: "Scanner", documents: "Sequence[PreparedDocument]"
    ) -> None:
        if scanner.meaning is None:
            raise ValueError(
                f"{scanner.checkpoint.source}: got a checkpoint without an encoder;"
                " expected one with an encoder, such as the bundled one, to look"
                " claims up: leave scanner out, or give claims=False to check quotes"
                " alone"
            )
        self._meaning = scanner.meaning
        self._documents = documents
        self._n_sentences = sum(len(document.units) for document in documents)
        self._sentences_with = _sentences_with_stems(documents)

    def evidence(self, claim: str, cited: Sequence[int]) -> list[ClaimEvidence]:
        """The evidence for a claim in the likeliest documents and in those it cites.

        The best supporting document comes first.
        """
        cosines_of = []
        for document in self._documents:
            cosines_of.append(self._cosines(claim, document))
        best_of_each = [float(cosines.max(initial=-1)) for cosines in cosines_of]
        ranked = np.argsort(-np.array(best_of_each), kind="stable")
        evidence: list[ClaimEvidence] = []
        for number in dict.fromkeys([*ranked[:_DOCUMENTS].tolist(), *cited]):
            if len(cosines_of[number]):
                evidence.append(self._evidence_in(claim, number, cosines_of[number]))
        return sorted(evidence, key=lambda sentence: -sentence.support)

    def _cosines(self, claim: str, document: "PreparedDocument") -> NDArray[np.float32]:
        """Cosines of a claim with a document's sentences, (sentences,).

        They are those of the encoder that reads both languages, on the scale of the
        scanner's own, or zeros without one.
        """
        assert document.vectors is not None  # of a scanner with an encoder
        meaning = self._meaning.of_question(claim, document.vectors)
        if meaning is None:
            return np.zeros(len(document.units), np.float32)
        vectors = meaning.own_vectors(document.vectors, document.indexed.sentences)
        cosines = meaning.cosines(claim, vectors)
        if meaning is self._meaning:
            return cosines
        weights = meaning.weights
        return self._meaning.weights.to_scale(cosines, weights.mean, weights.deviation)

    def _evidence_in(
        self, claim: str, number: int, cosines: NDArray[np.float32]
    ) -> ClaimEvidence:
        units = self._documents[number].units
        nearest = np.argsort(-cosines, kind="stable")[:_NEAREST].tolist()
        values: dict[int, float] = {}
        for place in nearest:
            text = units[place].model_text
            alone = features_of(claim, text, [text], 0.0, self._rarity)
            values[place] = float(cosines[place]) + _COVERAGE * alone.coverage
        picks = sorted(nearest, key=lambda place: -values[place])[:_SENTENCES]
        surroundings = set()
        for pick in picks:
            surroundings |= {pick - 1, pick, pick + 1}
        texts = []
        for place in sorted(surroundings & set(range(len(units)))):
            texts.append(units[place].model_text)
        features = features_of(
            claim,
            units[picks[0]].model_text,
            texts,
            float(cosines.max()),
            self._rarity,
        )
        spans = [(units[place].start, units[place].end) for place in picks]
        return ClaimEvidence(number, support(features), tuple(spans))

    def _rarity(self, stem: str) -> float:
        return math.log1p(self._n_sentences / (0.5 + self._sentences_with[stem]))


def support(features: ClaimFeatures) -> float:
    """The probability that a claim is supported, from 0 to 1.

    The weights were fitted on claims about pages of an encyclopedia (docs/verify.md).
    """
    logit = _BIAS
    for name, value in features._asdict().items():
        logit += _WEIGHTS[name] * value
    return 1 / (1 + math.exp(-logit))


def _sentences_with_stems(
    documents: "Sequence[PreparedDocument]",
) -> Counter[str]:
    """How many sentences have each stem."""
    counts: Counter[str] = Counter()
    for document in documents:
        for unit in document.units:
            words = sorted(set(unit.model_text.lower().split()))
            counts.update(set(stems_of([word.strip(".,;:!?\"'()") for word in words])))
    return counts
