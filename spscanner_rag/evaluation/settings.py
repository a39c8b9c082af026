"""What an evaluation compares: a retriever, the unit it ranks, and how it differs from its plain setting."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from spscanner_rag.baselines.named import units_for


@dataclass(frozen=True, slots=True)
class Setting:
    """A retriever and what it retrieves.

    Attributes
    ----------
    retriever
        As the command line names it.
    unit
        "sentence", "chunk", "passage" or "document".
    variants
        What is varied, such as "first tenth"; empty for the plain setting.
    """

    retriever: str
    unit: str = "sentence"
    variants: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Retriever and variants, under "retriever" in the files of a run."""
        return ", ".join((self.retriever, *self.variants))

    @property
    def key(self) -> tuple[str, str]:
        """What the records and rows of the setting begin with."""
        return self.name, self.unit

    @property
    def label(self) -> str:
        """For tables."""
        return self.name if self.unit == "sentence" else f"{self.name}, {self.unit}s"

    @property
    def has_probabilities(self) -> bool:
        """Whether scores are probabilities: the scanner's are, whatever is varied."""
        return self.retriever.partition(":")[0] == "scanner"

    def varied(self, variant: str) -> "Setting":
        """The same, with one more variant."""
        return replace(self, variants=(*self.variants, variant))


def settings_of(retrievers: Sequence[str], units: Sequence[str]) -> list[Setting]:
    """Every retriever with every unit that it has."""
    return [Setting(retriever, unit) for retriever in retrievers for unit in units_for(retriever, units)]
