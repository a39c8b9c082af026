"""Turn queries on texts into logits: prepare texts ahead of the model, then read several together."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.checkpoint.config import CheckpointDefault
from spscanner_rag.encoder.sentences import SentenceVectors
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.mamba2.reader import read_logits
from spscanner_rag.results import ScanResult
from spscanner_rag.results.sentences import Located
from spscanner_rag.scan.prepare import PreparedText, QueryOnText, Reading
from spscanner_rag.scorers import Cancelled, Progress, check_query, stop_if
from spscanner_rag.text.blocks import StructuredText
from spscanner_rag.text.segmentation import check_segmenter
from spscanner_rag.text.token_counts import CountTokens
from spscanner_rag.text.tokenization import encode_question
from spscanner_rag.text.units import Unit
from spscanner_rag.text.windows import average_logits, window_ranges

T = TypeVar("T")

# texts are prepared until they fill this many forward passes, then read together
PASSES_AHEAD = 16


class ScanRequest(NamedTuple):
    """A query on a text; ``units`` replace the segmenter's, and ``collection`` the words of the text alone."""

    query: str
    text: str
    units: Sequence[Unit] | None = None
    collection: CollectionIndex | None = None
    document: Located | None = None  # has the places of the text's characters
    prepared: PreparedText | None = (
        None  # the text with these units, if an earlier question prepared it
    )


class Scored(NamedTuple):
    """The units of a request's text, and the logit of each: (units,)."""

    request: ScanRequest
    cut: PreparedText
    logits: NDArray[np.float32]
    answerable: float | None = None

    def result(self, count_tokens: CountTokens) -> ScanResult:
        """The result for users; ``count_tokens`` counts tokens for its budgets."""
        return ScanResult(
            self.request.query,
            self.request.text,
            self.cut.starts,
            self.cut.ends,
            self.logits,
            count_tokens,
            tokens_read=len(self.cut.input_ids),
            answerable=self.answerable,
            document=self.request.document,
        )


LONGEST_QUESTION = 4000
"""Characters.

If a longer question comes with a shorter text, the two are taken to be swapped by
mistake.
"""


@dataclass(slots=True)
class Meter:
    """Reports progress in tokens after every forward pass, and stops if the caller cancels."""

    progress: Progress | None = None
    cancelled: Cancelled | None = None
    done: int = 0
    total: int = 0

    def after_step(self, tokens: int) -> None:
        """Count the tokens of a forward pass. Raises ``ScanCancelled``."""
        self.done += tokens
        if self.progress is not None:
            self.progress(self.done, self.total)
        self.check()

    def expect(self, tokens: int) -> None:
        """Count tokens that will be read."""
        self.total += tokens

    def check(self) -> None:
        """Raise ``ScanCancelled`` if the caller wants to stop."""
        if self.cancelled is not None:
            stop_if(self.cancelled, f"after {self.done} of {self.total} tokens")


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Reads requests with one model."""

    model: ScannerModel
    reading: Reading  # how the checkpoint reads a text
    window_tokens: (
        int | None
    )  # longer texts are read in half-overlapping windows of this many tokens
    segment_tokens: int  # per forward pass

    def request(
        self, query: object, text: object, units: Sequence[Unit] | None = None
    ) -> ScanRequest:
        """Check a query and a text.

        Raises ``TypeError`` and ``ValueError`` like `Scanner.scan`.
        """
        query = check_query(query)
        if not isinstance(text, str):
            raise TypeError(
                f"text: got {type(text).__name__}; expected a string (decode bytes"
                " first)"
            )
        if self.window_tokens is not None:
            tokens = len(encode_question(self.reading.tokenizer, query)[0])
            if tokens > self.window_tokens:
                raise ValueError(
                    f"the query has {tokens} tokens, expected at most"
                    f" {self.window_tokens} (one window); shorten it or raise"
                    " window_tokens"
                )
        return ScanRequest(query, str(text), units)

    def request_of(self, pair: object) -> ScanRequest:
        """Check a pair of query and text, and that they are not swapped.

        Cut a document that has blocks.
        """
        if isinstance(pair, ScanRequest):
            return pair
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise TypeError(f"a pair is {pair!r:.60}; expected (query, text)")
        query, text = pair
        if isinstance(text, StructuredText):
            units = (
                self.reading.cut_blocks(text.text, text.blocks) if text.blocks else None
            )
            located: Any = text
            document = (
                located
                if all(hasattr(text, name) for name in ("path", "page", "headings"))
                else None
            )
            return self.request(query, text.text, units)._replace(document=document)
        request = self.request(query, text)
        if LONGEST_QUESTION < len(request.query) > len(request.text) > 0:
            raise ValueError(
                f"the query has {len(request.query):,} characters and the text"
                f" {len(request.text):,}; expected the question first and then the"
                " text: exchange them (if the query is meant to be longer than the"
                " text, use score_units)"
            )
        return request

    def run(
        self,
        requests: Iterable[ScanRequest],
        meter: Meter,
        collection: CollectionIndex | None = None,
        together: bool = False,
    ) -> Generator[Scored, None, None]:
        """Yield the logits of every request, in order.

        Consecutive requests on one text prepare it once.
        """
        if collection is not None:
            requests = (request._replace(collection=collection) for request in requests)
        elif together:
            requests = self.counted_together(requests, meter)
        prepared = self._prepared(requests, meter)
        for run in in_runs(
            prepared, lambda pair: len(pair[1].text.input_ids), self.segment_tokens
        ):
            for (request, asked), (logits, answerable) in zip(
                run, self._logits(run, meter), strict=True
            ):
                yield Scored(request, asked.text, logits, answerable)

    def _prepared(
        self, requests: Iterable[ScanRequest], meter: Meter
    ) -> Iterator[tuple[ScanRequest, QueryOnText]]:
        before: ScanRequest | None = None
        statistics_of = cache(CollectionIndex.statistics)
        vectors: SentenceVectors | None = None
        for request in requests:
            meter.check()
            if (
                before is None
                or request.text is not before.text
                or request.units is not before.units
            ):
                text = request.prepared or self.reading.prepare(
                    request.text, request.units, meter.check
                )
                if self.reading.meaning is not None:
                    vectors = self.reading.meaning.vectors(
                        text.sentences, meter.expect, meter.after_step
                    )
            statistics = None
            if self.reading.lexical and request.collection is not None:
                options, language = self.reading.match_options, text.words.language
                statistics = statistics_of(
                    request.collection, request.query, options, language
                )
            asked = self.reading.pair(request.query, text, statistics, vectors)
            meter.check()
            before = request
            yield request, asked

    def counted_together(
        self, requests: Iterable[ScanRequest], meter: Meter
    ) -> list[ScanRequest]:
        """Make the requests one collection, if a lexical channel needs one.

        Each text is cut and counted once.
        """
        if not self.reading.lexical:
            return list(requests)
        cuts: dict[str, Sequence[Unit]] = {}  # by text
        cut_requests, index = [], CollectionIndex()
        for request in requests:
            meter.check()
            units = cuts.get(request.text) if request.units is None else request.units
            if units is None:
                units = cuts[request.text] = self.reading.cut(request.text, meter.check)
            if request.text not in index:
                index.add(request.text, [unit.model_text for unit in units])
            cut_requests.append(request._replace(units=units, collection=index))
        return cut_requests

    def _windows(self, text: PreparedText) -> list[tuple[int, int]]:
        if self.window_tokens is not None and self.window_tokens < len(text.input_ids):
            return window_ranges(text.unit_ends, self.window_tokens)
        return [(0, len(text.units) - 1)] if text.units else []

    def _logits(
        self, run: list[tuple[ScanRequest, QueryOnText]], meter: Meter
    ) -> Iterator[tuple[NDArray[np.float32], float | None]]:
        windows = [self._windows(asked.text) for _, asked in run]
        sequences = [
            asked.sequence(first, last)
            for (_, asked), own in zip(run, windows, strict=True)
            for first, last in own
        ]
        meter.expect(sum(len(sequence.input_ids) for sequence in sequences))
        read = iter(
            read_logits(self.model, sequences, self.segment_tokens, meter.after_step)
        )
        for (request, asked), own in zip(run, windows, strict=True):
            parts = [next(read) for _ in own]
            logits = asked.logits(average_logits(own, parts, len(asked.text.units)))
            if self.reading.meaning is None or asked.cosines is None:
                yield logits, None
            else:
                yield self.reading.meaning.read_again(
                    request.query,
                    asked.text.sentences,
                    logits,
                    asked.cosines,
                    meter.expect,
                    meter.after_step,
                )


def check_options(
    window_tokens: object, segment_tokens: object, segmenter: object
) -> None:
    """Raise ``ValueError`` for an unknown segmenter, or numbers of tokens that are not integers of at least 1."""
    for name, tokens in (
        ("segment_tokens", segment_tokens),
        ("window_tokens", window_tokens),
    ):
        given = tokens is not None and not isinstance(tokens, CheckpointDefault)
        if given and (type(tokens) is not int or tokens < 1):
            raise ValueError(
                f"{name} is {tokens!r}; expected a whole number of at least 1"
            )
    if segmenter is not None:
        check_segmenter(segmenter)


def in_runs(
    items: Iterable[T], tokens_of: Callable[[T], int], segment_tokens: int
) -> Iterator[list[T]]:
    """Yield runs of items that fill `PASSES_AHEAD` passes, so that similar lengths can be read together."""
    run: list[T] = []
    tokens = 0
    for item in items:
        run.append(item)
        tokens += tokens_of(item)
        if tokens >= PASSES_AHEAD * segment_tokens:
            yield run
            run, tokens = [], 0
    if run:
        yield run
