"""How well a sentence's meaning matches a question, whatever words both use.

Cosines are added with weights to the scanner's logits. A cross-reader reads the
likeliest sentences once more, each in its surroundings and together with the question.
"""

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache, partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.encoder.across_languages import QuestionMeans, cosines_across
from spscanner_rag.encoder.answer_evidence import answer_evidence, lead_of_others
from spscanner_rag.encoder.meaning_weights import MeaningWeights
from spscanner_rag.encoder.sentence_cross_reader import SentenceCrossReader
from spscanner_rag.encoder.sentence_encoder import SentenceEncoder, Step, ignore
from spscanner_rag.encoder.sentence_vectors import SentenceVectors, digest_of
from spscanner_rag.encoder.unrelated import unrelated_cosines
from spscanner_rag.encoder.vector_cache import (
    VectorCache,
    VectorStore,
    only_reader_of,
)
from spscanner_rag.text.folding import fold_texts, folded

LOWEST: Final = np.float32(-4)
"""The cross-reader's minimum logit, also of sentences that it did not read: how bad
one is means nothing."""

_QUESTIONS_REMEMBERED = 256


class Meaning:
    """An encoder, the vectors that it made, and the weights of its cosines.

    Thread-safe; pickled without vectors.

    Parameters
    ----------
    encoder : SentenceEncoder
        Makes the vectors.
    weights : MeaningWeights
        The weights of a sentence's scores.
    weighed : bool, default True
        Whether the weights were made for this encoder. Otherwise its cosines are
        scaled to those of the encoder that they were made for.
    cross : SentenceCrossReader, optional
        Reads the likeliest sentences once more.
    name : str, optional
        What results call the encoder. Default: "default" if it is ``weighed``, else
        "custom".
    """

    def __init__(
        self,
        encoder: SentenceEncoder,
        weights: MeaningWeights,
        *,
        weighed: bool = True,
        cross: SentenceCrossReader | None = None,
        name: str | None = None,
    ) -> None:
        self.encoder = encoder
        self.weights = weights
        self.weighed = weighed
        self.cross = cross if weights.cross else None
        self.name = name or ("default" if weighed else "custom")
        self.cache = VectorCache(encoder.digest)
        self._question_vector = lru_cache(_QUESTIONS_REMEMBERED)(encoder.question)
        self._question_means = QuestionMeans(encoder)

    def vectors(
        self, sentences: Sequence[str], before: Step = ignore, after_step: Step = ignore
    ) -> SentenceVectors:
        """Return the vectors of sentences as `fold_texts` reads them.

        They are made unless they are kept. While another thread reads the same text,
        ``after_step`` is called with 0.
        """
        folded_sentences = fold_texts(sentences)
        key = digest_of(folded_sentences)
        # Another thread may be about to keep them.
        with only_reader_of(key, after_step):
            vectors = self.cache.get(key, len(folded_sentences))
            if vectors is None:
                vectors = self.encoder.vectors(folded_sentences, before, after_step)
                vectors = vectors._replace(encoder=self.encoder.digest)
                self.cache.put_everywhere(key, vectors)
        return vectors

    def has_vectors(self, sentences: Sequence[str]) -> bool:
        """Return whether the vectors are kept, so that `vectors` reads nothing."""
        folded_sentences = fold_texts(sentences)
        key = digest_of(folded_sentences)
        return self.cache.get(key, len(folded_sentences)) is not None

    def keep_in(self, store: VectorStore | None) -> None:
        """Keep vectors in a store too, which is asked before a text is read."""
        self.cache.store = store

    def would_make(self, vectors: SentenceVectors) -> bool:
        """Return whether `vectors` would return such vectors."""
        return vectors.encoder == self.encoder.digest

    def own_vectors(
        self,
        vectors: SentenceVectors,
        sentences: Sequence[str],
        before: Step = ignore,
        after_step: Step = ignore,
    ) -> SentenceVectors:
        """Return vectors, or this encoder's where another one made them."""
        if vectors.encoder in ("", self.encoder.digest):
            return vectors
        return self.vectors(sentences, before, after_step)

    def reader_for(self, query: str) -> "Meaning | None":
        """Return what matches a question with a text of any language.

        None if it depends on the text.
        """
        return self

    def of_question(self, query: str, vectors: SentenceVectors) -> "Meaning | None":
        """Return what matches a question with a text that has these vectors.

        None if nothing does.
        """
        return self

    def question_vector(self, query: str) -> NDArray[np.float32]:
        """Return the vector of a question, of length 1: (width,)."""
        return self._question_vector(folded(query))

    def cosines(self, query: str, vectors: SentenceVectors) -> NDArray[np.float32]:
        """Return cosines of a question with sentences, (sentences,).

        They are on the scale that the weights were made for.
        """
        question = self.question_vector(query)
        if not len(vectors.rows):
            cosines = np.zeros(0, np.float32)
        elif vectors.rows.shape[1:] != question.shape:
            raise ValueError(
                f"the encoder's vectors have {len(question)} numbers for questions, "
                f"{vectors.rows.shape[1]} for sentences; expected the same: use query "
                "and passage models of one kind"
            )
        else:
            cosines = vectors.cosines(question)
        if self.weighed:
            return cosines
        return self.weights.to_scale(cosines, *self._unrelated_cosines)

    def cosines_across(
        self, query: str, vectors: SentenceVectors, languages: Sequence[str]
    ) -> NDArray[np.float32]:
        """Return `cosines` without what the vectors of each language have in common.

        Parameters
        ----------
        query : str
            The question.
        vectors : SentenceVectors
            Those of a text's sentences.
        languages : sequence of str
            The language of each sentence.
        """
        question_mean = self._question_means.of(query)
        question = self.question_vector(query)
        return cosines_across(question, question_mean, vectors, languages)

    def read_again(
        self,
        query: str,
        sentences: Sequence[str],
        logits: NDArray[np.float32],
        cosines: NDArray[np.float32],
        said_by_others: NDArray[np.bool_] | None = None,
        before: Step = ignore,
        after_step: Step = ignore,
        *,
        is_far_behind: bool = False,
    ) -> tuple[NDArray[np.float32], float | None]:
        """Let the cross-reader read the likeliest of a text's folded sentences.

        Parameters
        ----------
        query : str
            The question.
        sentences : sequence of str
            All sentences of the text.
        logits : array (sentences,)
            Their logits so far.
        cosines : array (sentences,)
            Their cosines with the question.
        said_by_others : array (sentences,), optional
            The sentences of others than those whose words are asked for.
        before, after_step : callable, optional
            As for `vectors`.
        is_far_behind : bool, default False
            Whether another text of the collection is so much likelier that nothing of
            this one is worth reading.

        Returns
        -------
        tuple
            The logits, (sentences,), with its own and those of others added, and the
            probability that one of the sentences answers. It is None unless the weights
            are the encoder's own and include that.
        """
        cross_logits = None
        if self.cross is not None and len(logits):
            cross_logits = np.full(len(logits), -np.inf, np.float32)
            if not is_far_behind:
                cross_logits = self.cross.logits(
                    folded(query), sentences, logits, before, after_step
                )
            added = self.weights.cross * np.maximum(cross_logits, LOWEST)
            logits = np.asarray(logits + added, np.float32)
        lead = 0.0
        if said_by_others is not None:
            lead = lead_of_others(logits, said_by_others)
            logits = self.weights.behind_asked(logits, said_by_others)
        if not self.weighed:
            return logits, None
        evidence = answer_evidence(cosines, cross_logits)
        return logits, self.weights.answerable(evidence, lead)

    @cached_property
    def _unrelated_cosines(self) -> tuple[float, float]:
        return unrelated_cosines(self.encoder)

    def __reduce__(self) -> tuple[Callable[..., "Meaning"], tuple[object, ...]]:
        rebuild = partial(
            Meaning, weighed=self.weighed, cross=self.cross, name=self.name
        )
        return rebuild, (self.encoder, self.weights)
