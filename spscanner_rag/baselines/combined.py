"""The base class of baselines that are made of other scorers."""

from collections.abc import Sequence

from spscanner_rag.baselines.base import CollectionBaseline
from spscanner_rag.baselines.units import UnitKind
from spscanner_rag.scorers import Scorer, segment
from spscanner_rag.text.units import Segmenter, Unit


class Combined(CollectionBaseline):
    """A baseline made of other scorers, whose first one cuts the units unless ``unit`` is given.

    Raises ``TypeError`` for an object that is not a `Scorer`.
    """

    def __init__(self, scorers: Sequence[Scorer], unit: UnitKind | Segmenter | None) -> None:
        super().__init__("sentence" if unit is None else unit)
        for scorer in scorers:
            if not isinstance(scorer, Scorer):
                raise TypeError(f"{type(scorer).__name__} does not score; expected score_units(...)")
        self.scorers = tuple(scorers)
        self._own_units = unit is not None

    def segment(self, text: str) -> list[Unit]:
        """Segment a text into ``unit``, else as the first scorer does."""
        return super().segment(text) if self._own_units else segment(self.scorers[0], text)

    @property
    def keeps_texts(self) -> bool:  # type: ignore[override]
        """Whether any of the scorers keeps what it made of a text."""
        return any(getattr(scorer, "keeps_texts", False) for scorer in self.scorers)


def name_of(scorer: object) -> str:
    """The name of a scorer in tables, else that of its class."""
    name = getattr(scorer, "name", None)
    return name if isinstance(name, str) else type(scorer).__name__.lower()
