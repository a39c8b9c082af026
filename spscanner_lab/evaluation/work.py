"""The work of a question in TFLOPs (10^12 operations), without and with padding.

It is the Single-Pass Scanner paper's Table 2. Without padding, a model computes nothing
but the tokens of its texts, as ours do. With padding, the sequences of a batch are all
read as if they were as long as the longest, as the paper's baselines read them.

There are formulas for scanners and for `Dense` with a BERT-like model of
sentence-transformers. What a language model or a server computes cannot be seen from
here, and BM25 computes next to nothing.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from spscanner_lab.evaluation.operations import (
    encoder_products,
    padded_lengths,
    scan_products,
)
from spscanner_rag.baselines.dense import Dense
from spscanner_rag.encoder.token_windows import WINDOW_TOKENS, TokenizedSentences
from spscanner_rag.encoder.window_encoder import WindowEncoder
from spscanner_rag.scan.reading import REANCHOR_QUESTIONS
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Scorer
from spscanner_rag.text.folding import folded
from spscanner_rag.text.tokenization import encode_question
from spscanner_rag.text.units import Unit
from spscanner_rag.text.windows import window_ranges

T = TypeVar("T")

BATCH_DOCUMENTS = 8
"""Documents of a batch, which are padded to the longest of them."""

ENCODER_BATCH = 32
"""Units of a batch of `Dense`, as in sentence-transformers."""

SPECIAL_TOKENS = 2  # [CLS] and [SEP]


class CutText(NamedTuple):
    """A text, cut into units."""

    text: str
    units: Sequence[Unit]


@dataclass(frozen=True, slots=True)
class Work:
    """Operations, without and with the padding of batches."""

    operations: float = 0.0
    padded: float = 0.0

    def __add__(self, other: "Work") -> "Work":
        operations = self.operations + other.operations
        return Work(operations, self.padded + other.padded)

    def metrics(self) -> dict[str, float]:
        """The metrics of a record."""
        return {"tflops": self.operations / 1e12, "tflops_padded": self.padded / 1e12}


class WorkCounter(ABC):
    """Counts the work of a scorer for the first question on a text."""

    @abstractmethod
    def of_query(self, query: str) -> Work:
        """What is computed once for a question, however many texts it is asked of."""

    @abstractmethod
    def of_text(self, query: str, text: CutText, batch: Sequence[CutText]) -> Work:
        """What is computed for a text.

        ``batch`` has the texts that are read together with it, itself included.
        """

    def of_texts(self, query: str, texts: Sequence[CutText]) -> Work:
        """What is computed for a question on texts, read in batches."""
        work = self.of_query(query)
        for batch in batches(texts, BATCH_DOCUMENTS):
            for text in batch:
                work += self.of_text(query, text, batch)
        return work


def work_counter(scorer: Scorer) -> WorkCounter | None:
    """The counter of a scorer, or None if there is no formula for it."""
    if isinstance(scorer, Scanner):
        meaning = scorer.meaning
        if meaning is None or isinstance(meaning.encoder, WindowEncoder):
            return ScannerWork(scorer)
    if isinstance(scorer, Dense):
        model = scorer.sentence_transformer
        config = getattr(getattr(model and model[0], "auto_model", None), "config", 0)
        if getattr(config, "model_type", "") == "bert":
            return DenseWork(scorer)
    return None


class _TokensOfText(NamedTuple):
    """What the work on a text depends on, apart from the question."""

    length: int  # in tokens
    unit_ends: NDArray[np.int64]  # (units,): the last token of each
    vectors: Work  # of the units, by the encoder


class ScannerWork(WorkCounter):
    """The work of a scanner: the reader's and the encoder's.

    The second reading of the likeliest sentences by a cross-reader is left out: it does
    not grow with the text.
    """

    def __init__(self, scanner: Scanner) -> None:
        self.scanner = scanner
        self._tokens_by_text: dict[tuple[str, int], _TokensOfText] = {}

    def of_query(self, query: str) -> Work:
        """The encoder's vector of the question."""
        encoder = self._encoder
        if encoder is None:
            return Work()
        length = len(encoder.question_ids(query)) + SPECIAL_TOKENS
        operations = encoder_products(encoder.shape, [length])
        return Work(operations, operations)

    def of_text(self, query: str, text: CutText, batch: Sequence[CutText]) -> Work:
        """The reader's tokens, padded to the longest text of the batch, and vectors."""
        config = self.scanner.pipeline.token_reader.config
        units = len(text.units)
        longest = max(self.tokens(query, other) for other in batch)
        operations = scan_products(config, self.tokens(query, text), units)
        padded = scan_products(config, longest, units)
        return Work(operations, padded) + self._tokens_of(text).vectors

    def tokens(self, query: str, text: CutText) -> int:
        """Tokens that the reader reads of a text, with all repetitions of the question.

        Where windows overlap, tokens count in each.
        """
        if not text.units:
            return 0
        reading = self.scanner.reading
        question = folded(query) if reading.folds else query
        question_ids, _, _ = encode_question(reading.tokenizer, question)
        every = reading.settings.reanchor_tokens
        if every:
            every = max(every, REANCHOR_QUESTIONS * len(question_ids))
        length, ends, _ = self._tokens_of(text)
        ranges = [(0, len(ends) - 1)]
        window_tokens = self.scanner.window_tokens
        if window_tokens is not None and window_tokens < length:
            ranges = window_ranges(ends, window_tokens)
        tokens = 0
        for first, last in ranges:
            begin = 0
            if first:
                begin = int(min(ends[first - 1] + 1, ends[first]))
            window_ends = ends[first : last + 1] - begin
            questions = _questions(window_ends, every)
            tokens += int(window_ends[-1]) + 1 + questions * len(question_ids)
        return tokens

    @property
    def _encoder(self) -> WindowEncoder[Any] | None:
        meaning = self.scanner.meaning
        if meaning is None or not isinstance(meaning.encoder, WindowEncoder):
            return None
        return meaning.encoder

    def _tokens_of(self, text: CutText) -> _TokensOfText:
        key = (text.text, len(text.units))
        if key not in self._tokens_by_text:
            indexed = self.scanner.reading.index_text(text.text, text.units)
            vectors = self._vectors(indexed.sentences)
            length = len(indexed.input_ids)
            tokens = _TokensOfText(length, indexed.unit_ends, vectors)
            self._tokens_by_text[key] = tokens
        return self._tokens_by_text[key]

    def _vectors(self, sentences: Sequence[str]) -> Work:
        """The encoder's windows, of which padded ones are as long as the longest."""
        encoder = self._encoder
        if encoder is None or not sentences:
            return Work()
        shape = encoder.shape
        longest = min(WINDOW_TOKENS, shape.max_position_embeddings - SPECIAL_TOKENS)
        ids = [encoder.ids(sentence) for sentence in sentences]
        windows = TokenizedSentences.of(ids).windows(longest)
        lengths = [stop - start + SPECIAL_TOKENS for start, stop in windows]
        padded = padded_lengths(lengths, max(1, len(lengths)))
        return Work(encoder_products(shape, lengths), encoder_products(shape, padded))


def _questions(unit_ends: NDArray[np.int64], every: int | None) -> int:
    """How often the question stands in a window, whose first token is number 0.

    It stands in front, and again after the first unit that ends ``every`` tokens later.
    """
    questions = 1
    begin = 0
    while every:
        unit = int(np.searchsorted(unit_ends, begin + every - 1))
        if unit == len(unit_ends) or unit_ends[unit] == unit_ends[-1]:
            break
        begin = int(unit_ends[unit]) + 1
        questions += 1
    return questions


class DenseWork(WorkCounter):
    """The work of a sentence-transformers model that reads unit by unit, in batches.

    sentence-transformers sorts the units first, the longest in front.
    """

    def __init__(self, dense: Dense) -> None:
        self.dense = dense
        self._model: Any = dense.sentence_transformer
        self._shape = self._model[0].auto_model.config

    def of_query(self, query: str) -> Work:
        """The vector of the question."""
        operations = encoder_products(self._shape, self._lengths([query]))
        return Work(operations, operations)

    def of_text(self, query: str, text: CutText, batch: Sequence[CutText]) -> Work:
        """The vectors of the units, padded to the longest of each batch of units."""
        if not text.units:
            return Work()
        lengths = self._lengths(self.dense.passages_of(text.text, text.units))
        lengths.sort(reverse=True)
        padded = padded_lengths(lengths, ENCODER_BATCH)
        return Work(
            encoder_products(self._shape, lengths),
            encoder_products(self._shape, padded),
        )

    def _lengths(self, texts: Sequence[str]) -> list[int]:
        limit = self._model.max_seq_length
        encoded = self._model.tokenizer(list(texts), truncation=True, max_length=limit)
        return [len(ids) for ids in encoded["input_ids"]]


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield ``size`` consecutive items at a time, fewer at the end."""
    batch: list[T] = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
