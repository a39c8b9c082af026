"""The settings that an evaluation compares: a retriever, the unit it ranks, and variants of both."""

from collections.abc import Sequence
from dataclasses import dataclass

from spscanner_rag.lab.retriever_names import NameParts, units_for


@dataclass(frozen=True, slots=True)
class Setting:
    """A retriever and the unit that it ranks."""

    retriever: str  # its name on the command line
    unit: str = "sentence"  # or "chunk", "passage", "document"; "" for what ranks nothing
    variants: tuple[str, ...] = ()  # changes to the plain setting, such as "sentence alone"

    @property
    def name(self) -> str:
        """Retriever and variants; the value of "retriever" in the files of a run."""
        return ", ".join((self.retriever, *self.variants))

    @property
    def key(self) -> tuple[str, str]:
        """Name and unit, which identify the setting in records and rows."""
        return self.name, self.unit

    @property
    def units(self) -> str:
        """What it ranks, in words, such as "chunks of 150 words"."""
        kind, _, words = self.unit.partition(":")
        return f"{kind}s of {words} words" if words else f"{kind}s"

    @property
    def label(self) -> str:
        """The name of the setting in tables."""
        return self.name if self.unit in ("sentence", "") else f"{self.name}, {self.units}"

    @property
    def has_probabilities(self) -> bool:
        """Whether the scores are probabilities, as all scores of a scanner are, here or behind a server."""
        return NameParts.of(self.retriever).kind in ("scanner", "remote")

    @property
    def has_index(self) -> bool:
        """Whether it looks a question up in an index that it made of the texts before, as BM25 and dense do.

        BlockSearch does too: it keeps the keys and values of all documents. So does a cascade whose first stage
        does. A scanner, here or behind a server, reads the texts anew.
        """
        name = NameParts.of(self.retriever)
        if name.kind == "cascade":
            return Setting(name.scorers[0]).has_index
        if name.scorers:
            return all(Setting(part).has_index for part in name.scorers)
        return name.kind in ("bm25", "dense", "blocksearch")


def settings_of(retrievers: Sequence[str], units: Sequence[str]) -> list[Setting]:
    """Every retriever with every unit that it ranks."""
    return [Setting(retriever, unit) for retriever in retrievers for unit in units_for(retriever, units)]
