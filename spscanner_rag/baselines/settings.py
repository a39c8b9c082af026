"""A retriever with the unit that it ranks: what evaluations and comparisons compare."""

from collections.abc import Sequence
from dataclasses import dataclass

from spscanner_rag.baselines.names import NameParts, units_for
from spscanner_rag.baselines.register import retriever_kinds


@dataclass(frozen=True, slots=True)
class Setting:
    """A retriever and the unit that it ranks."""

    retriever: str  # its name on the command line
    unit: str = "sentence"  # or "chunk", "passage", "document"; "" if it ranks nothing
    variants: tuple[
        str, ...
    ] = ()  # changes to the plain setting, such as "sentence alone"

    @property
    def name(self) -> str:
        """Retriever and variants: the value of "retriever" in the files of a run."""
        return ", ".join((self.retriever, *self.variants))

    @property
    def key(self) -> tuple[str, str]:
        """Name and unit, which identify the setting in records and rows."""
        return self.name, self.unit

    @property
    def label(self) -> str:
        """The name of the setting in tables, such as "bm25, chunks of 150 words"."""
        if self.unit in ("sentence", ""):
            return self.name
        kind, _, length = self.unit.partition(":")
        if kind == "document" and length:
            return f"{self.name}, first {length} tokens of documents"
        return self.name + (f", {kind}s of {length} words" if length else f", {kind}s")

    @property
    def has_probabilities(self) -> bool:
        """Whether the scores are probabilities, as a scanner's are, local or remote."""
        kind = retriever_kinds().get(NameParts.of(self.retriever).kind)
        return kind is not None and kind.gives_probabilities

    @property
    def has_index(self) -> bool:
        """Whether it looks questions up in an index of the texts, as BM25 does.

        So does BlockSearch, which keeps the keys and values of all documents, and a
        cascade whose first stage has an index. A scanner, local or behind a server,
        reads the texts for each question.
        """
        parts = NameParts.of(self.retriever)
        if parts.kind == "cascade":
            return Setting(parts.scorers[0]).has_index
        if parts.scorers:
            return all(Setting(part).has_index for part in parts.scorers)
        kind = retriever_kinds().get(parts.kind)
        return kind is not None and kind.has_index


def settings_of(retrievers: Sequence[str], units: Sequence[str]) -> list[Setting]:
    """Every retriever with each unit that it ranks."""
    return [
        Setting(retriever, unit)
        for retriever in retrievers
        for unit in units_for(retriever, units)
    ]
