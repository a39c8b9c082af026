"""The documents of a retriever, for its caller: which there are, to add and delete some, and to write them."""

from collections.abc import Sequence
from pathlib import Path

from llama_index.core.schema import BaseNode

from llama_index.retrievers.spscanner.held import HeldNodes


class HoldsDocuments:
    """The methods of a retriever that change or write the nodes it holds."""

    _held: HeldNodes

    def persist(self, path: str | Path) -> None:
        """Write the nodes and documents and their word counts to a folder, whole or not at all.

        Parameters
        ----------
        path : str or Path
            A new or empty folder, or one that was persisted to before, whose content is replaced.

        Raises
        ------
        ValueError
            If the folder holds anything else, or metadata hold values that JSON cannot keep. Nothing is written
            then.
        """
        self._held.persist(path)

    @property
    def ref_doc_ids(self) -> list[str]:
        """Ids of the documents, in the order in which they were added."""
        return self._held.ids

    def add(self, nodes: Sequence[BaseNode]) -> None:
        """Add documents or nodes; one with a known id replaces the earlier one.

        A question that is being answered meanwhile is answered from the documents as they were.
        """
        self._held.add(nodes)

    def delete(self, *ref_doc_ids: str) -> None:
        """Delete documents and all nodes that were cut from them.

        Raises
        ------
        ValueError
            If an id is unknown; then nothing is deleted.
        """
        self._held.delete(ref_doc_ids)
