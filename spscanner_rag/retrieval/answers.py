"""The results for a query, as objects that an adapter makes in its framework."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar

from spscanner_rag.retrieval.hits import Hit
from spscanner_rag.retrieval.host import Item, ReadText
from spscanner_rag.retrieval.joined_text import Place
from spscanner_rag.retrieval.metadata_of_results import result_metadata
from spscanner_rag.retrieval.page_metadata import page_label
from spscanner_rag.text.word_boxes import WORDS_KEY, Box, boxes_of, unpacked

Result = TypeVar("Result")


class Answer(ABC, Generic[Item, Result]):
    """The results for one query, which an adapter makes in its framework's classes.

    An adapter says how a sentence and a piece become a result, and where the framework
    keeps texts, metadata and scores. Results stand in `results`, in their order.

    Parameters
    ----------
    keep_retrieval_score : bool
        Whether results have the score of an earlier stage.
    """

    page_keys: ClassVar[tuple[str, ...]]
    """Metadata keys of a page's label, the first of which that is present counts."""

    unknown_offset: ClassVar[int | None] = None
    """What the framework writes for an offset that is unknown."""

    def __init__(self, keep_retrieval_score: bool) -> None:
        self.results: list[Result] = []
        self.keep_retrieval_score = keep_retrieval_score

    @abstractmethod
    def add_sentence(self, hit: Hit, text: ReadText[Item]) -> None:
        """Add a selected sentence of a text."""

    @abstractmethod
    def add_piece(
        self,
        best: Hit,
        text: ReadText[Item],
        piece_number: int,
        content: str,
        reductions: Mapping[str, float],
    ) -> None:
        """Add a piece of a text, whole or pruned.

        Parameters
        ----------
        best : Hit
            Its best sentence, whose scores are the piece's.
        text : ReadText
            The text that contains it.
        piece_number : int
            Its index in ``text.items``.
        content : str
            Its text, or what pruning leaves of it.
        reductions : mapping
            What pruning saves, as metadata; empty for a whole piece.
        """

    @abstractmethod
    def content(self, item_or_result: Item | Result) -> str:
        """Return the text of an item or a result, without metadata."""

    def text_for_model(self, result: Result) -> str:
        """Return what the framework sends of a result to a language model.

        ``max_tokens`` counts it.
        """
        return self.content(result)

    @abstractmethod
    def metadata_of(self, item: Item) -> Mapping[str, Any]:
        """Return the metadata of an item."""

    @abstractmethod
    def retrieval_score_of(self, item: Item) -> float | None:
        """Return the score that an item came with, if any."""

    def scores(
        self, hit: Hit, text: ReadText[Item], piece_number: int
    ) -> dict[str, Any]:
        """Return the scores of a result whose best sentence is the hit."""
        retrieval_score = None
        if self.keep_retrieval_score:
            retrieval_score = text.score
            if retrieval_score is None:
                retrieval_score = self.retrieval_score_of(text.items[piece_number])
        return {
            "score": hit.score,
            "logit": hit.logit,
            "probability": hit.probability,
            "document_score": hit.document_score,
            "retrieval_score": retrieval_score,
            "answerable": hit.answerable,
        }

    def metadata(
        self, hit: Hit, text: ReadText[Item], piece_number: int
    ) -> dict[str, Any]:
        """Return a copy of an item's metadata with the scores of a result.

        Scores that are None are left out.
        """
        metadata = result_metadata(self.metadata_of(text.items[piece_number]))
        for name, score in self.scores(hit, text, piece_number).items():
            if name != "score" and score is not None:
                metadata[f"spscanner_{name}"] = score
        return metadata

    def place_metadata(self, hit: Hit, text: ReadText[Item]) -> dict[str, Any]:
        """Return metadata about a sentence's place on its page.

        They are its rectangles, and its span on a later page that it runs over to.
        """
        run_places = list(text.joined.places_by_run(hit.start, hit.end))
        boxes: list[list[float]] = []
        for place in run_places:
            metadata = self.metadata_of(text.items[place.piece_number])
            boxes += [list(box) for box in _boxes(metadata, place)]
        details: dict[str, Any] = {}
        if boxes:
            details["spscanner_boxes"] = boxes
        last = run_places[-1]
        if last.source != hit.place.source:
            metadata = self.metadata_of(text.items[last.piece_number])
            label = page_label(metadata, self.page_keys)
            details["spscanner_continued_page"] = label
            details["spscanner_continued_start"] = self._offset(last.source_start)
            details["spscanner_continued_end"] = self._offset(last.source_end)
        return details

    def _offset(self, offset: int | None) -> int | None:
        return self.unknown_offset if offset is None else offset


def _boxes(metadata: Mapping[str, Any], place: Place) -> tuple[Box, ...]:
    """The rectangles of a place on its page, if those of its words are known."""
    packed = metadata.get(WORDS_KEY)
    if not isinstance(packed, str):
        return ()
    page_words = unpacked(packed)
    start = place.source_start
    end = place.source_end
    if page_words is None or start is None or end is None:
        return ()
    page, words = page_words
    return boxes_of(words, start, end, lambda _: page)
