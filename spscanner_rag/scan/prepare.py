"""Prepare texts as a checkpoint was trained to read them: cut, tokenized and laid out with the question."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from spscanner_rag.checkpoint import Checkpoint, ScannerSettings
from spscanner_rag.encoder.meaning import Meaning, MeaningWeights
from spscanner_rag.encoder.sentences import SentenceVectors
from spscanner_rag.lexical.match import (
    LexicalStatistics,
    MatchOptions,
    match_query,
    query_features,
)
from spscanner_rag.lexical.words import TextWords, WordVectors, index_words
from spscanner_rag.mamba2.reader import TokenSequence
from spscanner_rag.text.blocks import Block, segment_blocks, turns_of
from spscanner_rag.text.folding import fold_units, folded
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.tokenization import (
    EndRule,
    TokenizedText,
    encode_question,
    tokenize_units,
)
from spscanner_rag.text.units import Segmenter, Unit

REANCHOR_QUESTIONS = 4
"""The question is repeated at most once in this many times its own length, however
small the checkpoint's ``reanchor_tokens``: a very long question would otherwise
multiply the work."""

QUESTION_CLASS = 6  # match class of the question's own tokens


@dataclass(frozen=True)
class PreparedText(TokenizedText):
    """A tokenized text with the index of its words: everything that does not depend on the question."""

    @cached_property
    def words(self) -> TextWords:
        """The words of the units."""
        return index_words(self.sentences, fold=False)  # already folded

    @property
    def sentences(self) -> list[str]:
        """The texts of the units, as an encoder reads them."""
        return [unit.model_text for unit in self.units]


@dataclass(frozen=True, slots=True)
class QueryOnText:
    """A question matched with a text.

    `sequence` lays out the whole text, or some of its units, for the model.
    """

    text: PreparedText
    question_ids: NDArray[np.int32]  # (question tokens,)
    # The question is repeated after the first end token of a unit that comes at least
    # this many text tokens after the last repetition; None: never.
    repeat_every: int | None = None
    match_classes: NDArray[np.uint8] | None = None  # (text tokens,)
    prior: NDArray[np.float32] | None = None  # (units, lexical scores)
    match_features: NDArray[np.float32] | None = None  # (text tokens, 4)
    question_features: NDArray[np.float32] | None = None  # (question tokens, 4)
    # added to every logit: how far the whole text is behind the best of its collection
    offset: float = 0.0
    cosines: NDArray[np.float32] | None = (
        None  # (units,) of the question and a unit; None without an encoder
    )
    weights: MeaningWeights | None = None  # of the cosines

    def logits(self, scanner: NDArray[np.float32]) -> NDArray[np.float32]:
        """The units' final logits, from those of the model, each (units,)."""
        if self.cosines is None or self.weights is None:
            return scanner + np.float32(self.offset)
        return self.weights.logits(scanner, self.cosines) + np.float32(
            self.weights.texts * self.offset
        )

    def sequence(self, first: int = 0, last: int | None = None) -> TokenSequence:
        """The question before the tokens of units ``first`` to ``last``, inclusive.

        By default, of all units.
        """
        text, n_units = self.text, len(self.text.unit_ends)
        last = n_units - 1 if last is None else last
        token_ends = text.unit_ends[first : last + 1]
        begin = (
            min(int(text.unit_ends[first - 1]) + 1, int(token_ends[0])) if first else 0
        )
        stop = int(token_ends[-1]) + 1 if n_units else 0
        anchors = np.array(
            [begin, *_anchors(token_ends, begin, stop, self.repeat_every)],
            dtype=np.int64,
        )
        questions = np.searchsorted(
            anchors, token_ends, side="right"
        )  # number of questions before each end

        def interleaved(question: NDArray[Any], tokens: NDArray[Any]) -> NDArray[Any]:
            pieces = np.split(tokens[begin:stop], anchors[1:] - begin)
            return np.concatenate(
                [part for piece in pieces for part in (question, piece)]
            )

        classes = features = None
        if self.match_features is not None and self.question_features is not None:
            features = interleaved(self.question_features, self.match_features)
        if self.match_classes is not None:
            question_classes = np.full(len(self.question_ids), QUESTION_CLASS, np.uint8)
            classes = interleaved(question_classes, self.match_classes)
        return TokenSequence(
            interleaved(self.question_ids, text.input_ids),
            token_ends - begin + questions * len(self.question_ids),
            classes,
            None if self.prior is None else self.prior[first : last + 1],
            features,
        )


@dataclass(frozen=True, slots=True)
class Reading:
    """Reads any text as a checkpoint was trained to read it."""

    tokenizer: Tokenizer
    segmenter: Segmenter
    settings: ScannerSettings
    word_vectors: WordVectors | None = None
    meaning: Meaning | None = (
        None  # its cosines count in addition to the model's logits
    )

    @classmethod
    def of(
        cls, checkpoint: Checkpoint, segmenter: Segmenter | str | None = None
    ) -> Self:
        """The reading of a checkpoint, with its own segmenter unless another is given."""
        if segmenter is None or isinstance(segmenter, str):
            segmenter = SentenceSegmenter()
        own = checkpoint
        return cls(
            own.tokenizer, segmenter, own.settings, own.word_vectors, own.meaning
        )

    @property
    def match_options(self) -> MatchOptions:
        """How a question's words are matched."""
        own = self.settings
        return MatchOptions(
            own.surroundings,
            own.least_units,
            self.word_vectors,
            texts=own.text_weight > 0,
        )

    def prepare(
        self,
        text: str,
        units: Sequence[Unit] | None = None,
        between_parts: Callable[[], None] = lambda: None,
    ) -> PreparedText:
        """Cut (unless there are ``units``), tokenize and index a text.

        ``between_parts`` may raise.
        """
        units = self.folded_units(text, units, between_parts)
        rule: EndRule = (
            "last_character" if self.folds else "contained"
        )  # on which token a unit's logit sits
        tokenized = tokenize_units(
            self.tokenizer, units, rule, between_parts=between_parts
        )
        prepared = PreparedText(**vars(tokenized))
        if (
            self.lexical
        ):  # now, because `between_parts` can stop it; `words` is then cached
            words = index_words(
                prepared.sentences, between_parts=between_parts, fold=False
            )
            vars(prepared)["words"] = words
        return prepared

    def folded_units(
        self,
        text: str,
        units: Sequence[Unit] | None,
        between_parts: Callable[[], None],
    ) -> Sequence[Unit]:
        """The units of a text as the model and an encoder read them.

        The text is cut if no units are given.
        """
        units = self.cut(text, between_parts) if units is None else units
        return fold_units(units) if self.folds else units

    def cut(
        self, text: str, between_parts: Callable[[], None] = lambda: None
    ) -> Sequence[Unit]:
        """Cut a text with the segmenter; ``between_parts`` is as for `prepare`."""
        if (
            type(self.segmenter) is SentenceSegmenter
        ):  # a subclass may have another `segment`
            if turns := turns_of(text):
                return self.cut_blocks(text, turns, between_parts)
            return self.segmenter.segment_in_parts(text, between_parts)
        return self.segmenter.segment(text)

    def cut_blocks(
        self,
        text: str,
        blocks: Iterable[Block],
        between_parts: Callable[[], None] = lambda: None,
    ) -> Sequence[Unit]:
        """Cut a text with blocks, all by the language of the whole.

        ``between_parts`` is as for `prepare`.
        """

        def checked() -> Iterator[Block]:
            for block in blocks:
                between_parts()
                yield block

        if type(self.segmenter) is not SentenceSegmenter:
            return segment_blocks(text, checked(), self.segmenter.segment)
        own = self.segmenter.for_text(text)
        return segment_blocks(
            text, checked(), lambda part: own.segment_in_parts(part, between_parts)
        )

    @property
    def folds(self) -> bool:
        """True unless texts are read unchanged, as a published scanner reads them."""
        return self.settings.segmenter != "reference"

    @property
    def lexical(self) -> bool:
        """True if a text's logits depend on the words of the collection that it belongs to."""
        return self.settings.match or self.settings.prior

    def pair(
        self,
        query: str,
        text: PreparedText,
        statistics: LexicalStatistics | None = None,
        vectors: SentenceVectors | None = None,
    ) -> QueryOnText:
        """Tokenize a question and match it with a text, by default a collection of its own."""
        query = folded(query) if self.folds else query
        question_ids, starts, ends = encode_question(self.tokenizer, query)
        every, least = (
            self.settings.reanchor_tokens,
            REANCHOR_QUESTIONS * len(question_ids),
        )
        asked = QueryOnText(text, question_ids, every and max(every, least))
        if self.meaning is not None:
            vectors = (
                self.meaning.vectors(text.sentences) if vectors is None else vectors
            )
            asked = replace(
                asked,
                cosines=self.meaning.cosines(query, vectors),
                weights=self.meaning.weights,
            )
        if not self.lexical:
            return asked
        match = match_query(
            text.words,
            query,
            text.token_starts,
            text.token_ends,
            self.match_options,
            statistics,
        )
        idf = match.query_idf
        return replace(
            asked,
            match_classes=match.token_classes if self.settings.match else None,
            prior=match.scores if self.settings.prior else None,
            match_features=match.token_features,
            question_features=(
                None
                if idf is None
                else query_features(query, starts, ends, idf, match.language)
            ),
            offset=self.settings.text_weight * match.text_score,
        )


def _anchors(
    token_ends: NDArray[np.int64], begin: int, stop: int, every: int | None
) -> Iterator[int]:
    """Indices of the document tokens before which the question is repeated."""
    position = begin
    while every:
        unit = int(np.searchsorted(token_ends, position + every - 1))
        if unit == len(token_ends) or int(token_ends[unit]) + 1 >= stop:
            return
        position = int(token_ends[unit]) + 1
        yield position
