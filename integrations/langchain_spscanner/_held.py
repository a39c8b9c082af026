"""The documents of a retriever: added, deleted, kept in a folder, and counted once, until they change."""

import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

from langchain_core.documents import Document
from pydantic import PrivateAttr

from langchain_spscanner._conversion import HeldDocuments
from langchain_spscanner._folder import load_documents, persist_documents
from langchain_spscanner._identity import own_copies
from langchain_spscanner._options import ScanFields
from spscanner_rag.retrieval import Corpus

_writing = threading.Lock()  # shared by all retrievers: it is held only while a tuple is replaced


class DocumentsHeld(ScanFields):
    """The documents of a retriever and the counts of their words."""

    _corpus: Corpus = PrivateAttr(default_factory=Corpus)

    @classmethod
    def load(cls, path: str | Path, **fields: Any) -> Self:  # noqa: ANN401
        """Read the documents and their word counts from a folder that `persist` wrote.

        Parameters
        ----------
        path : str or Path
            The folder. Its arrays are used from disk, so it should stay until the retriever is gone.
        **fields
            Fields of the class except ``documents``; `persist` keeps none of them.

        Raises
        ------
        ValueError
            If the folder is missing, was written by something else, or is damaged.
        """
        documents, corpus = load_documents(path)
        retriever = cls(documents=(), **fields)
        retriever.documents, retriever._corpus = own_copies(documents), corpus
        retriever._counted()
        return retriever

    def persist(self, path: str | Path) -> None:
        """Write the documents and their word counts to a folder, whole or not at all.

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
        held, corpus = self._counted()
        persist_documents(path, tuple(held.documents), corpus)

    def add_documents(
        self, documents: Iterable[Document], ids: Sequence[str | None] | None = None
    ) -> list[str]:
        """Add copies of documents, which replace those with the same id.

        A question that is being answered meanwhile is answered from the documents as they were.

        Parameters
        ----------
        documents : iterable of Document
        ids : sequence of str or None, optional
            Their ids, one for each. Default: their own.

        Returns
        -------
        list of str
            Their ids; a document without an id gets a digest of its text and metadata.

        Raises
        ------
        ValueError
            For two different documents with the same id, or more or fewer ids than documents. Nothing is added
            then.
        """
        documents = list(documents)
        if ids is not None:
            if len(ids) != len(documents):
                raise ValueError(f"ids: got {len(ids)} for {len(documents)} documents; expected one for each")
            documents = [
                document if name is None else document.model_copy(update={"id": name})
                for document, name in zip(documents, ids, strict=True)
            ]
        new = {document.id: document for document in own_copies(documents)}
        with _writing:
            known = {document.id: document for document in self.documents or ()}
            self.documents = tuple((known | new).values())
        return [str(name) for name in new]

    def delete(self, ids: Iterable[str]) -> None:
        """Delete documents by their ids.

        Raises
        ------
        ValueError
            If an id is unknown; then nothing is deleted.
        """
        gone = {ids} if isinstance(ids, str) else set(ids)
        with _writing:
            documents = self.documents or ()
            unknown = gone - {document.id for document in documents}
            if unknown:
                raise ValueError(
                    f"ids: got {sorted(map(str, unknown))[:5]}; expected ids of documents that are here"
                )
            self.documents = tuple(document for document in documents if document.id not in gone)

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Copies of the documents with these ids, in the order in which they were added; of known ids only."""
        wanted = set(ids)
        return list(own_copies(document for document in self.documents or () if document.id in wanted))

    def __getstate__(self) -> dict[Any, Any]:
        state = super().__getstate__()  # without what is made of the documents again
        return {**state, "__pydantic_private__": {**state["__pydantic_private__"], "_corpus": self._corpus}}

    def _counted(self) -> tuple[HeldDocuments, Corpus]:
        """The documents as they are now, and their corpus; counts the words of new ones."""
        held = self._held_documents()
        corpus = self._corpus = self._corpus.with_texts([text.joined for text in held.texts])
        return held, corpus
