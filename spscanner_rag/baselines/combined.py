"""The base class of retrievers that are made of others."""

from collections.abc import Iterable, Sequence

import numpy as np

from spscanner_rag.baselines.baseline import Baseline, Scores
from spscanner_rag.baselines.unit_kinds import UnitKind, segmenter_of
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.scorers import (
    Cancelled,
    Request,
    Scorer,
    check_scorer,
    score_batch,
)
from spscanner_rag.text.block_segmentation import segment_blocks
from spscanner_rag.text.blocks import Block
from spscanner_rag.text.units import Segmenter, Unit


class Combined(Baseline):
    """A baseline made of other scorers (else ``TypeError``).

    The first cuts the units, unless ``unit`` is given.

    If units are sentences, a scanner among the scorers cuts them: published ones were
    trained on their own kind.
    """

    def __init__(
        self, scorers: Sequence[Scorer], unit: UnitKind | Segmenter | None
    ) -> None:
        super().__init__("sentence" if unit is None else unit)
        for scorer in scorers:
            check_scorer(scorer)
        self._scorers = tuple(scorers)
        self._unit_was_given = unit is not None

    @property
    def scorers(self) -> tuple[Scorer, ...]:
        """The scorers that this one is made of, in order."""
        return self._scorers

    def units_of(self, text: str, blocks: Sequence[Block] = ()) -> list[Unit]:
        """Cut a text into ``unit``, else as the first scorer does.

        For sentences, see the class.
        """
        if blocks and self.unit == "sentence":
            return segment_blocks(text, blocks, self.units_of)
        segmenter = None
        if self.unit == self.unit_name == "sentence":
            segmenter = self.segmenter
        if segmenter is not None and segmenter.name != "sentence":
            return segmenter.segment(text)
        if self._unit_was_given:
            return segmenter_of(self.unit).segment(text)
        return self.scorers[0].units_of(text)

    @property
    def unit_name(self) -> str | None:
        """The name of ``unit`` if it was given, else of the first scorer's units."""
        if self._unit_was_given:
            return super().unit_name
        return self.scorers[0].unit_name

    @property
    def keeps_texts(self) -> bool:
        """True if any of the scorers keeps what it computed for a text."""
        return any(scorer.keeps_texts for scorer in self.scorers)


def logits_of(
    scorer: Scorer,
    requests: Sequence[Request],
    cancelled: Cancelled,
    collection: CollectionIndex | None = None,
) -> list[Scores]:
    """Return a scorer's logits of the units of each text, (units,) each."""
    scores = score_batch(scorer, requests, cancelled, collection)
    return [scores_of_text.logits for scores_of_text in scores]


def joined(scores: Iterable[Scores]) -> Scores:
    """Return the scores of several texts, end to end."""
    return np.concatenate([np.zeros(0, np.float32), *scores])


def apart(scores: Scores, requests: Sequence[Request]) -> list[Scores]:
    """Return scores that lie end to end, (units,) for each text again."""
    sizes = [len(units) for _, _, units in requests]
    return np.split(scores, np.cumsum(sizes)[:-1])
