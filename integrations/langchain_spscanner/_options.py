"""The fields that the retriever and the compressor share, and the search with them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from langchain_core.documents import Document
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    PrivateAttr,
    SkipValidation,
    field_serializer,
    field_validator,
    model_validator,
)
from pydantic_core.core_schema import CoreSchema, no_info_before_validator_function

from langchain_spscanner._conversion import HeldDocuments, TextToScan
from langchain_spscanner._identity import own_copies
from langchain_spscanner._results import results
from spscanner_rag.retrieval import (
    Order,
    ReturnNodes,
    SentenceSearch,
    compression_metadata,
    hide_token_in_fields,
    split_token,
)
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Cancelled, Scorer, check_query, never


def require_query(query: object) -> str:
    """Return the query; raise ``ValueError`` if there is none, `TypeError` if it is not a string."""
    if query is None:
        raise ValueError("query: got None; expected a question or key words")
    return check_query(query)


class ScanFields(BaseModel):
    """Which model scores, and which sentences are selected."""

    model_config = ConfigDict(
        arbitrary_types_allowed=True,
        extra="forbid",
        hide_input_in_errors=True,  # the input may hold an access token
        protected_namespaces=(),
    )

    model: str | Path | None = None
    """Checkpoint: a local folder or a Hub id. None: the bundled one, which needs no network."""

    scanner: SkipValidation[Scanner | None] = None
    """A loaded scanner, instead of ``model``."""

    scorer: SkipValidation[Scorer | None] = None
    """Anything else that scores sentences, such as a baseline, instead of ``model``."""

    backend: str = "auto"
    """What computes the state-space operator, as for `Scanner.from_pretrained`."""

    device: str = "auto"
    """"auto" takes CUDA, then MPS, then the CPU."""

    dtype: str = "auto"
    """"float32", "bfloat16", "int8" on a CPU, or "auto": bfloat16 where the hardware multiplies it natively and
    faster."""

    model_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Further arguments of `Scanner.from_pretrained`. A ``token`` among them is never shown or stored."""

    k: SkipValidation[int | float | str | None] = 50
    """Maximum number of sentences; below 1 a share of all, but at least 10; "elbow" or "elbow:5-30" for as
    many as stand above the steepest fall of the scores; None for no limit."""

    k_per_document: SkipValidation[int | None] = None
    """Maximum number of sentences of each document, neighbours not counted; None for no limit."""

    threshold: SkipValidation[float | None] = None
    """Minimum score, from 0 to 1, inclusive; None for no limit."""

    max_tokens: SkipValidation[int | None] = None
    """Token budget of all results together; None for no budget."""

    count_tokens: SkipValidation[Callable[[str], int] | str | None] = None
    """Token counter: a callable or the name of a tiktoken encoding. None: the scanner's own tokenizer."""

    context_sentences: SkipValidation[int] = 0
    """Neighbours added on each side of each sentence; they count for ``max_tokens`` but not for ``k``."""

    order: SkipValidation[Order] = "score"
    """``"score"``, best first, or ``"document"``, as they stand in the documents."""

    merge_adjacent: SkipValidation[bool] = False
    """Merge adjacent sentences into one result."""

    diversity: SkipValidation[float] = 1.0
    """Below 1, sentences that repeat better ones are passed over; see `ScanResult.select`."""

    batch_size: int = Field(default=64, ge=1, strict=True)
    """Number of documents given to the scorer at a time."""

    document_key: str | None = "source"
    """Documents with the same value under this metadata key are read as one, such as the pages of a file, sorted
    by page number if all have one. None: each is read alone."""

    return_nodes: ReturnNodes = "sentence"
    """What to return: sentences; "node": the documents in which selected sentences stand, with the score of their
    best one, as a reranker does; or "pruned": these, cut down to the selected sentences. Sentences are selected
    first, by all other fields, which count sentences; documents without one are dropped."""

    keep_retrieval_score: bool = False
    """Keep the score of an earlier stage as ``spscanner_retrieval_score``."""

    keep_compression: bool = False
    """Count the tokens of all results of a question together, and of all texts that were read for it: the keys
    ``spscanner_tokens_kept`` and ``spscanner_tokens_read``."""

    documents: SkipValidation[Sequence[Document] | None] = Field(default=None, repr=False)

    _held: HeldDocuments | None = PrivateAttr(default=None)

    @field_validator("documents", mode="before")
    @classmethod
    def _copy_documents(cls, value: Iterable[Document] | None) -> tuple[Document, ...] | None:
        return None if value is None else own_copies(value)

    @field_serializer("model_kwargs")
    def _without_token(self, value: dict[str, Any]) -> dict[str, Any]:
        return split_token(value)[0]

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._search().choice.check_names()
        return self

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:  # noqa: ANN401
        # Before all other validators, so that no error holds the token, not even in its input.
        return no_info_before_validator_function(hide_token_in_fields, handler(source))

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        # Copies share the scorer: another copy of the weights would cost as much memory again.
        memo = {} if memo is None else memo
        memo.update((id(shared), shared) for shared in (self.scanner, self.scorer) if shared is not None)
        return super().__deepcopy__(memo)

    def __getstate__(self) -> dict[Any, Any]:
        # A pickle leaves out the index of the documents, which is built again when it is needed.
        return {**super().__getstate__(), "__pydantic_private__": {"_held": None}}

    def _held_documents(self) -> HeldDocuments:
        """The documents, indexed once; again when they or the key change."""
        held, documents, key = self._held, self.documents or (), self.document_key
        if held is None or held.documents is not documents or held.document_key != key:
            held = self._held = HeldDocuments(documents, key)
        return held

    def _search(self, arguments: Mapping[str, Any] | None = None) -> SentenceSearch:
        """The search with the values of the fields; ``arguments`` of one call override them."""
        return SentenceSearch.of(
            {**self.__dict__, **(arguments or {})}, top_k="k", top_k_per_text="k_per_document"
        )

    def _scan(
        self, query: str, texts: Sequence[TextToScan], search: SentenceSearch, cancelled: Cancelled = never
    ) -> list[Document]:
        found = results(search, query, texts, self.return_nodes, self.keep_retrieval_score, cancelled)
        if self.keep_compression and found:
            returned = (document.page_content for document in found)
            counted = compression_metadata(*search.compression((text.joined for text in texts), returned))
            for document in found:
                document.metadata |= counted
        return found
