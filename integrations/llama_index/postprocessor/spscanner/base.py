"""The node postprocessor: reduces retrieved nodes to their best sentences."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from llama_index.core.storage.docstore import BaseDocumentStore
from pydantic import (
    ConfigDict,
    Field,
    FieldSerializationInfo,
    GetCoreSchemaHandler,
    StrictFloat,
    StrictInt,
    ValidationInfo,
    field_serializer,
    field_validator,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema
from pydantic_core.core_schema import CoreSchema, no_info_before_validator_function

from llama_index.postprocessor.spscanner.events import dispatcher, reranking
from llama_index.postprocessor.spscanner.nodes import (
    AUTO,
    GroupBy,
    check_documents,
    query_text,
    read_nodes,
    source_id,
    source_texts,
    with_scores,
)
from llama_index.postprocessor.spscanner.saved_settings import object_name, plain, refuse_object_name
from llama_index.postprocessor.spscanner.whole_nodes import best_nodes
from spscanner_rag.retrieval import (
    ReturnNodes,
    SentenceSearch,
    hide_token,
    hide_token_in_fields,
    loading_options,
    off_loop,
)
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Cancelled, never

_SHARED_BY_COPIES = ("callback_manager", "scanner", "scorer", "documents", "docstore", "count_tokens")


class SPScannerPostprocessor(BaseNodePostprocessor):
    """Selects the best sentences of the retrieved nodes.

    The nodes of one document are read as one text, in reading order, and every sentence of it gets a score. Each
    selected sentence becomes a new node; the given nodes do not change. A result is a `ScannedNode`: a
    `NodeWithScore` that has the logit and the document's score too.

    Parameters
    ----------
    model : str or Path, optional
        A local checkpoint folder or a Hub id. Default: the bundled checkpoint. The first call that needs it loads
        it, once in a process.
    scanner : Scanner, optional
        A loaded scanner, instead of ``model``. `to_dict` and pickle store the arguments that load it again.
    scorer : Scorer, optional
        Anything else with ``score_units(query, text, units)``, instead of ``model``. `to_dict` stores only its
        name: pass it again to ``from_dict(data, scorer=...)``.
    backend, device, dtype : str, default "auto"
        See `Scanner.from_pretrained`.
    model_kwargs : dict, optional
        Further arguments of `Scanner.from_pretrained`. A ``token`` in it is never shown, stored or pickled.
    top_n : int, float or str, default 50
        Sentences to select: a number of at least 1, a share below 1 (at least 10 sentences), "elbow" or
        "elbow:5-30" for as many as stand above the steepest fall of the scores, or None for all.
    threshold : float, optional
        Minimum score, from 0 to 1, inclusive.
    max_tokens : int, optional
        Token budget for all sentences together.
    count_tokens : callable or str, optional
        Token counter: ``str -> int`` or the name of a tiktoken encoding. Default: the scanner's.
    context_sentences : int, default 0
        Neighbours to add on each side of a selected sentence; they count for ``max_tokens`` but not for ``top_n``.
    order : "score" or "document", default "score"
        Best first, or in document order.
    merge_adjacent : bool, default False
        Merge adjacent sentences into one node.
    diversity : float, default 1.0
        Below 1, sentences that repeat better ones are passed over; see `ScanResult.select`.
    batch_size : int, default 64
        Number of texts given to the scanner at a time.
    return_nodes : "sentence", "node" or "pruned", default "sentence"
        What to return. "node": the given nodes in which selected sentences stand, with the score of their best
        one, as a reranker does. "pruned": copies of these, cut down to the selected sentences. Sentences are
        selected first, by all other parameters, which count sentences; nodes without one are dropped.
    keep_retrieval_score : bool, default False
        Keep the score of a sentence's node as ``retrieval_score`` of the result.
    keep_compression : bool, default False
        Count the tokens of all results of a question together, and of all texts that were read for it:
        ``tokens_kept`` and ``tokens_read`` of each result.
    group_by : "document" or "node", default "document"
        What is read as one text: all nodes of a document, or each node alone.
    document_key : str or None, default "auto"
        Metadata key. Documents with the same value are read as one text, sorted by page number. "auto": those
        with a ``page_label`` or ``page``, and with the same ``file_path`` or else ``file_name``. None: each
        document is read alone.
    top_n_per_document : int, optional
        Maximum number of sentences of each document, neighbours not counted.
    documents : sequence of nodes, optional
        Whole documents that the nodes were cut from. They are read instead of their nodes, so that every
        sentence gets its score in the whole text. `to_dict` does not store them.
    docstore : BaseDocumentStore, optional
        Document store in which such documents, or all of their nodes, are looked up by the id of the node's
        SOURCE. `to_dict` does not store it.

    Raises
    ------
    pydantic.ValidationError, TypeError
        For an unknown argument or a value out of range.
    """

    model_config = ConfigDict(
        arbitrary_types_allowed=True,
        extra="forbid",
        hide_input_in_errors=True,
        protected_namespaces=(),
        validate_assignment=True,
    )

    model: str | Path | None = Field(default=None, description="Checkpoint folder or Hub id; None: bundled.")
    scanner: SkipJsonSchema[Scanner | None] = Field(
        default=None, exclude=True, repr=False, description="A loaded scanner."
    )
    scorer: Any = Field(default=None, repr=False, description="Anything else that scores units.")
    backend: str = Field(default="auto", description="What computes the state-space operator.")
    model_kwargs: dict[str, Any] = Field(
        default_factory=dict, description="Other arguments of Scanner.from_pretrained."
    )
    top_n: StrictInt | StrictFloat | str | None = Field(default=50, description="Sentences to keep.")
    threshold: float | None = Field(default=None, description="Lowest score, 0 to 1, inclusive.")
    max_tokens: StrictInt | None = Field(default=None, description="Token budget.")
    count_tokens: SkipJsonSchema[Callable[[str], int]] | str | None = Field(
        default=None, description="Token counter or name of a tiktoken encoding."
    )
    context_sentences: StrictInt = Field(default=0, description="Neighbours on each side.")
    order: Literal["score", "document"] = Field(default="score", description="Order of the sentences.")
    merge_adjacent: bool = Field(default=False, description="One node for adjacent sentences.")
    diversity: float = Field(default=1.0, description="Below 1, repetitions are passed over.")
    device: str = Field(default="auto", description="cpu, cuda, mps or auto.")
    dtype: str = Field(default="auto", description="float32, bfloat16, int8 or auto.")
    return_nodes: ReturnNodes = Field(default="sentence", description="What to return.")
    batch_size: StrictInt = Field(default=64, ge=1, description="Texts given to the scanner at a time.")
    keep_retrieval_score: bool = Field(default=False, description="Keep the node's score in metadata.")
    keep_compression: bool = Field(default=False, description="Count the tokens kept and read.")
    group_by: GroupBy = Field(default="document", description="What is read as one text.")
    document_key: str | None = Field(default=AUTO, description="Metadata key that joins documents.")
    top_n_per_document: StrictInt | None = Field(default=None, description="Most sentences of a document.")
    documents: SkipJsonSchema[Sequence[BaseNode] | None] = Field(
        default=None, exclude=True, repr=False, description="Whole source documents."
    )
    docstore: SkipJsonSchema[BaseDocumentStore | None] = Field(
        default=None, exclude=True, repr=False, description="Where source documents are looked up."
    )

    if not TYPE_CHECKING:  # type checkers read the fields instead

        def __setattr__(self, name: str, value: object) -> None:
            before = self.__dict__.copy()
            try:
                super().__setattr__(name, value)
            except Exception:
                self.__dict__.update(before)  # pydantic keeps a value that a model validator refused
                raise

    @field_validator("model_kwargs", mode="before")
    @classmethod
    def _hide_assigned_token(cls, value: object) -> object:
        if value is None:
            return {}
        for name, option in value.items() if isinstance(value, dict) else ():
            refuse_object_name(f"model_kwargs[{name!r}]", option)
        return hide_token(value)

    @field_validator("model", mode="before")
    @classmethod
    def _as_path(cls, value: object) -> object:
        return str(value) if isinstance(value, Path) else value

    @field_validator("device", "dtype", mode="before")
    @classmethod
    def _as_name(cls, value: object) -> object:
        return str(value).removeprefix("torch.")  # also accepts torch's own objects

    @field_validator("scorer", "count_tokens", mode="before")
    @classmethod
    def _not_a_name(cls, value: object, info: ValidationInfo) -> object:
        refuse_object_name(str(info.field_name), value)
        return value

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._search().choice.check_names()
        check_documents(self.documents or ())
        if self.top_n_per_document is not None and self.group_by == "node":
            raise ValueError(
                f'top_n_per_document: got {self.top_n_per_document} with group_by="node", which reads each node '
                'alone; expected group_by="document"'
            )
        return self

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:  # noqa: ANN401
        # Before all other validators, so that no error holds the token, not even in its input.
        return no_info_before_validator_function(hide_token_in_fields, handler(source))

    @classmethod
    def class_name(cls) -> str:
        """The name of the class in serialized components."""
        return "SPScannerPostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        query, given = query_text(query_bundle), with_scores(nodes)
        with self._reranking(query_bundle, given) as found:
            found.extend(self._sentences(query, given))
        return found

    @dispatcher.span
    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        query, given = query_text(query_bundle), with_scores(nodes)
        with self._reranking(query_bundle, given) as found:
            if given:
                at_once = self._search().at_once
                found.extend(
                    await off_loop(lambda cancelled: self._sentences(query, given, cancelled), at_once)
                )
        return found

    def _reranking(
        self, query: QueryBundle | None, nodes: list[NodeWithScore]
    ) -> AbstractContextManager[list[NodeWithScore]]:
        most = self.top_n if isinstance(self.top_n, int) else len(nodes)
        name = self._search().choice.name
        return reranking(self.callback_manager, query or QueryBundle(""), nodes, most, name)

    def _sentences(
        self, query: str, nodes: Sequence[NodeWithScore], cancelled: Cancelled = never
    ) -> list[NodeWithScore]:
        sources = source_texts((source_id(scored.node) for scored in nodes), self.documents, self.docstore)
        joined = read_nodes(nodes, sources, self.group_by, self.document_key)
        keep = self.keep_retrieval_score, self.keep_compression
        return best_nodes(self._search(), query, [joined], self.return_nodes, *keep, cancelled)

    def _search(self) -> SentenceSearch:
        return SentenceSearch.of(self.__dict__, top_k="top_n", top_k_per_text="top_n_per_document")

    @field_serializer("model", "device", "dtype", "model_kwargs")
    def _stored(self, value: Any, info: FieldSerializationInfo) -> Any:  # noqa: ANN401 - of several fields
        if self.scanner is not None:
            value = loading_options(self.scanner)[info.field_name]
        if info.field_name == "model_kwargs":
            return {name: plain(option) for name, option in value.items() if name != "token"}
        return value

    @field_serializer("scorer", "count_tokens")
    def _named(self, value: object) -> object:
        return value if value is None or isinstance(value, str) else object_name(value)

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        # The base class silently drops what cannot be pickled; a copy without its scorer would use another one.
        state = {name: value for name, value in self.__dict__.items() if name != "callback_manager"}
        if self.scanner is not None:
            state |= {**loading_options(self.scanner), "scanner": None}
        state["model_kwargs"] = {k: v for k, v in state["model_kwargs"].items() if k != "token"}
        return partial(type(self), **state), ()

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        # The copy shares what is read-only, and what should not be in memory twice.
        memo = {} if memo is None else memo
        shared = [*(getattr(self, name) for name in _SHARED_BY_COPIES), *self.model_kwargs.values()]
        memo.update((id(value), value) for value in shared)
        return super().__deepcopy__(memo)
