"""Select from the results of several documents as if they were one result."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.results.passages import Passage
from spscanner_rag.results.scan_result import ScanResult
from spscanner_rag.results.selection import Selection

_BETWEEN_TEXTS = "\n\n"


class Together:
    """The results of at least one document, for one question.

    Sentences are selected from them as if they were one result. Neighbours and merged
    passages stay within a block of a document. The first result's ``count_tokens``
    counts.

    Examples
    --------
    >>> results = [
    ...     ScanResult("Who?", "It sank.", [0], [8], [0.5]),
    ...     ScanResult("Who?", "The keeper.", [0], [11], [2.0]),
    ... ]
    >>> for number, passage in Together(results).select(Selection(order="score")):
    ...     print(number, passage.text)
    1 The keeper.
    0 It sank.
    """

    def __init__(self, results: Sequence[ScanResult]) -> None:
        self.results = results
        self._offsets = [0]  # where each document begins in the joined text
        for result in results[:-1]:
            length = len(result.text) + len(_BETWEEN_TEXTS)
            self._offsets.append(self._offsets[-1] + length)
        n_sentences = [len(result.logits) for result in results]
        self._owners = np.repeat(np.arange(len(results)), n_sentences)
        self.joined = results[0] if len(results) == 1 else self._join()

    def select(self, selection: Selection) -> list[tuple[int, Passage]]:
        """Pairs of a document's index and a passage.

        It raises ``ValueError`` for a budget without a token counter, and for
        ``require_answer`` if a result does not know whether its text answers. Texts
        below ``require_answer`` take part as if they had no sentence.
        """
        if selection.require_answer is not None:
            return self._select_from_answering(selection)
        pairs = []
        for passage in self.joined.selected(selection, self._owners):
            number = bisect_right(self._offsets, passage.start) - 1
            start = passage.start - self._offsets[number]
            end = passage.end - self._offsets[number]
            pairs.append((number, replace(passage, start=start, end=end)))
        return pairs

    def _select_from_answering(self, selection: Selection) -> list[tuple[int, Passage]]:
        results: list[ScanResult] = []
        for result in self.results:
            if not result.may_answer(selection.require_answer):
                result = _without_sentences(result)
            results.append(result)
        return Together(results).select(replace(selection, require_answer=None))

    def _join(self) -> ScanResult:
        """All documents as one, with a number for each block of each document."""
        starts = []
        ends = []
        for result, offset in zip(self.results, self._offsets, strict=True):
            starts.append(result.starts + offset)
            ends.append(result.ends + offset)
        return ScanResult(
            self.results[0].query,
            _BETWEEN_TEXTS.join(result.text for result in self.results),
            np.concatenate(starts),
            np.concatenate(ends),
            np.concatenate([result.logits for result in self.results]),
            self.results[0].count_tokens,
            self._joined_blocks(),
            answerable=self._most_answerable(),
            keep_scale=self.results[0].keep_scale,
            shows_relative=self.results[0].shows_relative,
        )

    def _most_answerable(self) -> float | None:
        """The probability that a text answers, of the text that is likeliest to."""
        probabilities: list[float] = []
        for result in self.results:
            if result.answerable is not None:
                probabilities.append(result.answerable)
        return max(probabilities, default=None)

    def _joined_blocks(self) -> NDArray[np.int64]:
        blocks = np.concatenate([result.block_of for result in self.results])
        new_block = np.diff(blocks, prepend=blocks[:1]) != 0
        new_document = np.diff(self._owners, prepend=0) != 0
        return np.cumsum(new_block | new_document)


def _without_sentences(result: ScanResult) -> ScanResult:
    return replace(
        result,
        starts=result.starts[:0],
        ends=result.ends[:0],
        logits=result.logits[:0],
        blocks=None,
    )
