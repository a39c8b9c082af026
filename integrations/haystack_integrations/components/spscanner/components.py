"""The ranker and the extractor.

They name their base, as ``super()`` fails in classes that ``component`` makes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

from haystack import Document, component, default_from_dict, default_to_dict
from pydantic import SkipValidation
from typing_extensions import override

from spscanner_rag.retrieval import (
    Answer,
    Hit,
    Piece,
    ReadText,
    ScanFields,
    join_pieces,
)
from spscanner_rag.scorers import Cancelled, check_query, never


def once(documents: Sequence[Document]) -> list[Document]:
    """The documents without duplicates.

    Of those with one id, the one with the highest score is kept.
    """
    own: dict[str, Document] = {}
    for document in documents:
        own[document.id] = max(
            own.get(document.id, document), document, key=lambda one: one.score or 0
        )
    return list(own.values())


def read(documents: Sequence[Document]) -> list[ReadText[Document]]:
    """Documents as texts; chunks that Haystack's splitters cut from one document are read together."""
    pieces = []
    for number, document in enumerate(documents):
        start, parent = (
            document.meta.get("split_idx_start"),
            document.meta.get("source_id"),
        )
        cut = type(start) is int and isinstance(parent, str)
        pieces.append(
            Piece(
                text=document.content or "",
                key=str(number),
                source=("parent", parent) if cut else ("whole", document.id),
                start=start if cut else 0,
                last=not cut,
            )
        )
    return [ReadText(joined, documents) for joined in join_pieces(pieces)]


class _Found(Answer[Document, Document]):
    """Results as new documents, each with the metadata of the document that it was found in."""

    pages: ClassVar = ("page_number",)

    def add_sentence(self, hit: Hit, text: ReadText[Document]) -> None:
        place, start, end = hit.place, hit.place.source_start, hit.place.source_end
        source = place.source[1]  # type: ignore[index]  # see `read`
        meta = self.metadata(hit, text, place.piece)
        meta |= {
            "source_id": source,
            "split_idx_start": start,
            "split_idx_end": end,
        } | self.place(hit, text)
        name = (
            "" if start is None else f"{source}:{start}-{end}"
        )  # else Haystack's digest
        self.found.append(
            Document(id=name, content=hit.text, meta=meta, score=hit.score)
        )

    def add_piece(
        self,
        best: Hit,
        text: ReadText[Document],
        piece: int,
        content: str,
        saved: Mapping[str, float],
    ) -> None:
        meta = {**self.metadata(best, text, piece), **saved}
        self.found.append(
            replace(text.items[piece], content=content, meta=meta, score=best.score)
        )

    def content(self, of: Document) -> str:
        return of.content or ""

    def metadata_of(self, item: Document) -> Mapping[str, Any]:
        return item.meta

    def own_score(self, item: Document) -> float | None:
        return item.score


class _Fields(ScanFields):
    limits: ClassVar = ("top_k", "top_k_per_document")

    top_k: SkipValidation[int | float | str | None] = None
    top_k_per_document: SkipValidation[int | None] = None


class _Component:
    """Reads documents for a query.

    Its arguments are saved and restored with a pipeline.
    """

    _always: ClassVar[dict[str, Any]] = {}  # fields that the class fixes

    def __init__(self, **fields: Any) -> None:  # noqa: ANN401
        self._fields = _Fields(**fields)

    def warm_up(self) -> None:
        """Load the model, once per process."""
        self._fields._search().choice.resolve()

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, documents: list[Document], top_k: int | None = None
    ) -> dict[str, Any]:
        """Answer from documents, which do not change.

        ``top_k``, if given, replaces the component's.
        """
        return {"documents": self._answer(query, once(documents), top_k)}

    @component.output_types(documents=list[Document])
    async def run_async(
        self, query: str, documents: list[Document], top_k: int | None = None
    ) -> dict[str, Any]:
        """`run` off the event loop; cancelling the task ends the scan."""
        answer = partial(self._answer, query, once(documents), top_k)
        return {"documents": await self._fields._search().off_loop(answer)}

    def to_dict(self) -> dict[str, Any]:
        """Return the arguments, without an access token.

        A pipeline refuses to save objects among them.
        """
        given = {
            name: getattr(self._fields, name)
            for name in sorted(self._fields.model_fields_set)
        }
        given |= {
            name: str(value) for name, value in given.items() if isinstance(value, Path)
        }
        if "model_kwargs" in given:
            given["model_kwargs"] = {
                k: own for k, own in given["model_kwargs"].items() if k != "token"
            }
        return default_to_dict(self, **given)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Make the component from what `to_dict` returned."""
        return default_from_dict(cls, data)

    def _answer(
        self,
        query: str,
        documents: list[Document],
        top_k: int | None,
        cancelled: Cancelled = never,
    ) -> list[Document]:
        own = {} if top_k is None else {"top_k": top_k}
        check_query(query)
        return self._fields._search(own | self._always).answer(
            query, read(documents), _Found, cancelled
        )


@component
class SPScannerRanker(_Component):
    """Ranks documents by their best sentences.

    A document's score is that of its best sentence, from 0 to 1.

    Chunks that a splitter cut from one document are read together. Documents without
    text come last, unscored.

    Parameters
    ----------
    top_k : int, default 10
        Maximum number of documents to return; None for all.
    **fields
        Which model scores: ``model``, ``device``, ``model_kwargs`` or ``scorer``; also
        ``threshold``, ``require_answer``, ``batch_size`` and ``keep_retrieval_score``.
    """

    _always: ClassVar = {"top_k": None, "return_nodes": "node", "order": "score"}

    def __init__(self, top_k: int | None = 10, **fields: Any) -> None:  # noqa: ANN401
        _Component.__init__(self, top_k=top_k, **fields)

    @override
    def _answer(
        self,
        query: str,
        documents: list[Document],
        top_k: int | None,
        cancelled: Cancelled = never,
    ) -> list[Document]:
        most = self._fields._search(
            {} if top_k is None else {"top_k": top_k}
        ).selection.top_k
        ranked = _Component._answer(self, query, documents, None, cancelled)
        if self._fields.threshold is None and self._fields.require_answer is None:
            found = {one.id for one in ranked}
            ranked += [
                replace(one, score=None) for one in documents if one.id not in found
            ]
        return ranked if most is None else ranked[: int(most)]


@component
class SPScannerExtractor(_Component):
    """Extracts the sentences of documents that matter for a query, each as a document with its place and score.

    Their meta are the document's, with ``source_id``, ``split_idx_start``,
    ``split_idx_end`` and scores added.

    Parameters
    ----------
    top_k : int, float, str or None, default 50
        Maximum number of sentences of all documents together; below 1 a share; "elbow";
        None for no limit.
    **fields
        As for `SPScannerRanker`, and ``top_k_per_document``, ``max_tokens``,
        ``count_tokens``, ``order``, ``context_sentences``, ``merge_adjacent``,
        ``diversity`` and ``return_nodes``.
    """

    def __init__(self, top_k: float | str | None = 50, **fields: Any) -> None:  # noqa: ANN401
        _Component.__init__(self, top_k=top_k, **fields)
