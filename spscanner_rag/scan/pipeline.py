"""Turn queries on texts into logits: texts are prepared ahead, and read together."""

import os
import warnings
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.mamba2.token_reader import TokenReader
from spscanner_rag.mamba2.token_sequences import TokenSequence
from spscanner_rag.results import ScanResult
from spscanner_rag.scan.echoes import after_echoes
from spscanner_rag.scan.indexed_text import IndexedText
from spscanner_rag.scan.lead_ins import with_lead_ins
from spscanner_rag.scan.meter import Meter
from spscanner_rag.scan.numbered_siblings import before_siblings
from spscanner_rag.scan.passes import in_runs
from spscanner_rag.scan.prepared_document import PreparedDocument
from spscanner_rag.scan.query_on_text import QueryOnText
from spscanner_rag.scan.read_share import (
    SentenceRange,
    likeliest_stretches,
    token_budget,
)
from spscanner_rag.scan.reading import Reading, StatisticsOf, location_in
from spscanner_rag.scan.requests import ScanRequest, check_order
from spscanner_rag.scan.text_vectors import TextVectors
from spscanner_rag.scan.texts_together import beside_one_another
from spscanner_rag.scan.who_said_it import said_by_others
from spscanner_rag.scorers import Read, check_query
from spscanner_rag.text.blocks import StructuredText
from spscanner_rag.text.file_names import looks_like_path
from spscanner_rag.text.keep_scale import KeepScale
from spscanner_rag.text.token_counts import CountTokens
from spscanner_rag.text.tokenization import encode_question
from spscanner_rag.text.units import Unit
from spscanner_rag.text.windows import average_logits, window_ranges

_READ_A_FILE = "spscanner_rag.files.read(path), or `spscanner scan` at a terminal"

Window = tuple[int, int]  # its first and last unit


class ScannedText(NamedTuple):
    """The text of a request, and the logit of each of its units: (units,)."""

    request: ScanRequest
    indexed: IndexedText
    logits: NDArray[np.float32]
    answerable: float | None = None
    tokens_read: int | None = None  # None: all
    encoder: str | None = None  # the name of what made its vectors

    def result(
        self, count_tokens: CountTokens, keep_scale: KeepScale | None
    ) -> ScanResult:
        """The result for users.

        ``count_tokens`` counts tokens for its budgets, and ``keep_scale`` makes scores
        to cut at.
        """
        tokens_read = self.tokens_read
        if tokens_read is None:
            tokens_read = len(self.indexed.input_ids)
        return ScanResult(
            self.request.query,
            self.request.text,
            self.indexed.starts,
            self.indexed.ends,
            self.logits,
            count_tokens,
            tokens_read=tokens_read,
            answerable=self.answerable,
            document=self.request.document,
            n_tokens=len(self.indexed.input_ids),
            encoder=self.encoder,
            keep_scale=keep_scale,
        )


class PlannedText(NamedTuple):
    """A request whose question is matched with its text, and what is read of it."""

    request: ScanRequest
    query_on_text: QueryOnText
    # what is read of the text; None: all of it
    stretches: Sequence[SentenceRange] | None = None

    @property
    def n_tokens(self) -> int:
        """How many tokens of the text are read."""
        text = self.query_on_text.text
        if self.stretches is None:
            return len(text.input_ids)
        unit_tokens = text.unit_tokens
        return sum(
            int(unit_tokens[first : last + 1].sum()) for first, last in self.stretches
        )

    @property
    def is_read(self) -> NDArray[np.bool_] | None:
        """Which units are read, (units,), or None for all of them."""
        if self.stretches is None:
            return None
        mask = np.zeros(len(self.query_on_text.text.units), bool)
        for first, last in self.stretches:
            mask[first : last + 1] = True
        return mask


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Reads requests with one model."""

    token_reader: TokenReader
    reading: Reading  # how the checkpoint reads a text
    # Longer texts are read in half-overlapping windows of this many tokens.
    window_tokens: int | None
    segment_tokens: int  # per forward pass

    def request(
        self, query: object, text: object, units: Sequence[Unit] | None = None
    ) -> ScanRequest:
        """Check a query and a text.

        Raises ``TypeError`` and ``ValueError`` like `Scanner.scan`.
        """
        query = check_query(query)
        text = check_text(text)
        if self.window_tokens is not None:
            tokens = len(encode_question(self.reading.tokenizer, query)[0])
            if tokens > self.window_tokens:
                raise ValueError(
                    f"the query has {tokens} tokens, expected at most"
                    f" {self.window_tokens} (one window); shorten it or raise"
                    " window_tokens"
                )
        return ScanRequest(query, text, units)

    def request_of(self, pair: object) -> ScanRequest:
        """Check a pair of a query and a document, and that they are not swapped."""
        if isinstance(pair, ScanRequest):
            return pair
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise TypeError(f"a pair is {pair!r:.60}; expected (query, text)")
        query, document = pair
        request = self.request_on(query, document)
        if isinstance(document, str):
            check_order(request.query, request.text)
        return request

    def request_on(self, query: object, document: object) -> ScanRequest:
        """Check a query and a document, and cut the document if it has blocks."""
        if isinstance(document, PreparedDocument):
            return self._request_on_prepared(query, document)
        if not isinstance(document, StructuredText):
            request = self.request(query, document)
            warn_of_path(request.text)
            return request
        request = self.request(query, document.text)
        units = None
        if document.blocks:
            units = self.reading.cut_blocks(request.text, document.blocks)
        return request._replace(units=units, document=location_in(document))

    def _request_on_prepared(
        self, query: object, document: PreparedDocument
    ) -> ScanRequest:
        if document.prepared_by is not self.reading:
            raise ValueError(
                "the document was prepared by another scanner; expected one of this"
                " scanner's: prepare it again with this scanner's prepare(text)"
            )
        return self.request(query, document.text, document.units)._replace(
            document=document.location,
            prepared=document.indexed,
            vectors=document.vectors,
        )

    def run(
        self,
        requests: Iterable[ScanRequest],
        meter: Meter,
        collection: CollectionIndex | None = None,
        together: bool = False,
        read: Read = "auto",
    ) -> Generator[ScannedText, None, None]:
        """Yield the logits of every request, in order.

        Consecutive requests on one text prepare it once. Of texts of a collection, the
        likeliest sentences of all are read.
        """
        planned = self.planned(requests, meter, collection, together, read)
        yield from self.read_planned(planned, meter)

    def planned(
        self,
        requests: Iterable[ScanRequest],
        meter: Meter,
        collection: CollectionIndex | None = None,
        together: bool = False,
        read: Read = "auto",
    ) -> Iterator[PlannedText]:
        """Match each question with its text, and choose what is read of the text."""
        if collection is not None:
            requests = (request._replace(collection=collection) for request in requests)
        elif together:
            requests = self.counted_together(requests, meter)
        matched_requests = self._matched(requests, meter)
        if together or collection is not None:
            yield from self._planned_together(list(matched_requests), read)
            return
        for matched in matched_requests:
            yield from self._planned_together([matched], read)

    def read_planned(
        self, planned: Iterable[PlannedText], meter: Meter
    ) -> Generator[ScannedText, None, None]:
        """Yield the logits of texts of any number of `planned` collections, in order.

        Short ones share forward passes.
        """
        for run in in_runs(
            planned, lambda request: request.n_tokens, self.segment_tokens
        ):
            scores = self._scores(run, meter)
            for request, (logits, answerable) in zip(run, scores, strict=True):
                yield ScannedText(
                    request.request,
                    request.query_on_text.text,
                    logits,
                    answerable,
                    request.n_tokens,
                    request.query_on_text.encoder,
                )

    def _planned_together(
        self, matched_requests: Sequence[PlannedText], read: Read
    ) -> list[PlannedText]:
        """Choose what is read of texts of which the same is asked."""
        matched_requests = _beside_one_another(matched_requests)
        if self.reading.sentence_scan is None or self.window_tokens is not None:
            return list(matched_requests)
        planned = list(matched_requests)
        numbers_by_query: dict[str, list[int]] = {}
        for number, matched in enumerate(matched_requests):
            if not matched.query_on_text.reads:
                continue
            if matched.query_on_text.likelihoods is not None:
                numbers_by_query.setdefault(matched.request.query, []).append(number)
        for numbers in numbers_by_query.values():
            texts = [matched_requests[number].query_on_text for number in numbers]
            n_tokens = sum(len(text.text.input_ids) for text in texts)
            budget = token_budget(read, n_tokens)
            if budget is None:
                continue
            likelihoods = []
            for text in texts:
                assert text.likelihoods is not None
                likelihoods.append(text.likelihoods)
            unit_tokens = [text.text.unit_tokens for text in texts]
            stretches_by_text = likeliest_stretches(likelihoods, unit_tokens, budget)
            for number, stretches in zip(numbers, stretches_by_text, strict=True):
                planned[number] = planned[number]._replace(stretches=stretches)
        return planned

    def _matched(
        self, requests: Iterable[ScanRequest], meter: Meter
    ) -> Iterator[PlannedText]:
        """Match each request's question with its text, which is indexed if need be."""
        statistics_of = cache(CollectionIndex.statistics)
        before: ScanRequest | None = None
        indexed: IndexedText | None = None
        text_vectors: TextVectors | None = None
        for request in requests:
            meter.check()
            if indexed is None or before is None or not _same_text(request, before):
                indexed = request.prepared or self.reading.index_text(
                    request.text, request.units, meter.check
                )
                text_vectors = TextVectors(self.reading, indexed, request.vectors)
            assert text_vectors is not None
            vectors = text_vectors.for_question(request.query, meter)
            statistics: StatisticsOf | None = None
            if self.reading.lexical and request.collection is not None:
                statistics = partial(
                    statistics_of,
                    request.collection,
                    options=self.reading.match_options,
                    language=indexed.words.language,
                )
            matched = self.reading.pair(request.query, indexed, statistics, vectors)
            meter.check()
            before = request
            yield PlannedText(request, matched, None if matched.reads else ())

    def counted_together(
        self, requests: Iterable[ScanRequest], meter: Meter
    ) -> list[ScanRequest]:
        """Make the requests one collection, if a lexical channel needs one.

        Each text is cut and counted once.
        """
        if not self.reading.lexical:
            return list(requests)
        units_by_text: dict[str, Sequence[Unit]] = {}
        collection = CollectionIndex()
        counted = []
        for request in requests:
            meter.check()
            text = request.text
            units = request.units
            if units is None:
                units = units_by_text.get(text)
            if units is None:
                units = self.reading.cut(text, meter.check)
                units_by_text[text] = units
            if text not in collection and request.prepared is not None:
                collection.add_words(text, request.prepared.words)
            elif text not in collection:
                collection.add(text, [unit.model_text for unit in units])
            counted.append(request._replace(units=units, collection=collection))
        return counted

    def _windows(self, text: IndexedText) -> list[Window]:
        """The windows in which a text is read.

        One if it is short enough.
        """
        if self.window_tokens is not None and self.window_tokens < len(text.input_ids):
            return window_ranges(text.unit_ends, self.window_tokens)
        return [(0, len(text.units) - 1)] if text.units else []

    def _scores(
        self, run: list[PlannedText], meter: Meter
    ) -> Iterator[tuple[NDArray[np.float32], float | None]]:
        """Yield the logits of each text, (units,), and how likely it answers."""
        windows_by_text = []
        for matched in run:
            windows = matched.stretches
            if windows is None:
                windows = self._windows(matched.query_on_text.text)
            windows_by_text.append(windows)
        sequences: list[TokenSequence] = []
        for matched, windows in zip(run, windows_by_text, strict=True):
            for first, last in windows:
                sequences.append(matched.query_on_text.sequence(first, last))
        meter.expect(sum(len(sequence.input_ids) for sequence in sequences))
        logits_of_sequences = iter(
            self.token_reader.read_logits(
                sequences, self.segment_tokens, meter.after_step
            )
        )
        for matched, windows in zip(run, windows_by_text, strict=True):
            parts = [next(logits_of_sequences) for _ in windows]
            query_on_text = matched.query_on_text
            averaged = average_logits(windows, parts, len(query_on_text.text.units))
            logits = query_on_text.logits(averaged, matched.is_read)
            logits, answerable = _read_again(query_on_text, logits, meter)
            if self.reading.lexical:
                words = query_on_text.text.words
                logits = before_siblings(logits, query_on_text.query, words)
            yield logits, answerable


def _beside_one_another(matched_requests: Sequence[PlannedText]) -> list[PlannedText]:
    """The texts, each with how far it is behind the best that is asked the same."""
    together = list(matched_requests)
    numbers_by_question: dict[tuple[str, str | None], list[int]] = {}
    for number, matched in enumerate(together):
        on_text = matched.query_on_text
        if on_text.meaning is not None and on_text.meaning.weights.weighs_texts:
            question = (matched.request.query, on_text.encoder)
            numbers_by_question.setdefault(question, []).append(number)
    for numbers in numbers_by_question.values():
        on_texts = [together[number].query_on_text for number in numbers]
        for number, on_text in zip(numbers, beside_one_another(on_texts), strict=True):
            together[number] = together[number]._replace(query_on_text=on_text)
    return together


def _read_again(
    query_on_text: QueryOnText, logits: NDArray[np.float32], meter: Meter
) -> tuple[NDArray[np.float32], float | None]:
    """The logits of a text after all that weighs them, and how likely it answers."""
    meaning = query_on_text.meaning
    if meaning is None or query_on_text.cosines is None:
        return logits, None
    text = query_on_text.text
    weights = meaning.weights
    others = None
    if weights.weighs_others:
        others = said_by_others(query_on_text.query, text.speakers)
    logits, answerable = meaning.read_again(
        query_on_text.query,
        text.sentences,
        logits,
        query_on_text.cosines,
        others,
        meter.expect,
        meter.after_step,
        is_far_behind=query_on_text.is_far_behind,
    )
    if weights.weighs_echoes:
        logits = after_echoes(logits, text.marks, weights)
    if weights.weighs_lists:
        logits = with_lead_ins(logits, text.marks, weights)
    return logits, answerable


def check_text(text: object) -> str:
    """Return a text, or raise ``TypeError`` if it is not a string."""
    if isinstance(text, os.PathLike):
        raise TypeError(
            f"text: got a path, {os.fspath(text)!r:.200}; expected the text of a"
            f" document: use {_READ_A_FILE}"
        )
    if not isinstance(text, str):
        raise TypeError(
            f"text: got {type(text).__name__}; expected a string (decode bytes first)"
        )
    return str(text)


def warn_of_path(text: str) -> None:
    """Warn of a text that looks like the path of a file.

    It is scanned as it is: a document may consist of a file's name.
    """
    if looks_like_path(text):
        warnings.warn(
            f"text: {text.strip()!r:.200} looks like a path, and is scanned as a text"
            f" of these few characters; to scan the file, use {_READ_A_FILE}",
            stacklevel=2,
        )


def _same_text(request: ScanRequest, before: ScanRequest) -> bool:
    """Whether what was prepared for the request before holds for this one."""
    return request.text is before.text and request.units is before.units
