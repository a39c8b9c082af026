"""The fields that the pydantic classes of all frameworks share: which model scores, and what is returned."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    SkipValidation,
    field_validator,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema
from pydantic_core.core_schema import CoreSchema, no_info_before_validator_function

from spscanner_rag.results.selection import Order
from spscanner_rag.retrieval.answers import ReturnNodes
from spscanner_rag.retrieval.held import OwnFirstStage, ReadBounds, ReadTokens
from spscanner_rag.retrieval.search import Prompt, Selection, SentenceSearch
from spscanner_rag.retrieval.shared_scanners import ScorerChoice, hide_token
from spscanner_rag.scanner import Scanner
from spscanner_rag.text.token_counts import budget_counter


class ScanFields(BaseModel):
    """Which model scores, which sentences are selected, and what is returned."""

    model_config = ConfigDict(
        arbitrary_types_allowed=True,
        extra="forbid",
        hide_input_in_errors=True,  # the input may hold an access token
        protected_namespaces=(),
        use_attribute_docstrings=True,
    )

    limits: ClassVar[tuple[str, str]]
    """The fields with the maximum number of sentences, of all documents and of each."""

    shared_by_copies: ClassVar[tuple[str, ...]] = ("scanner", "scorer")
    """The fields whose values deep copies share: weights should not be in memory
    twice."""

    model: str | Path | None = None
    """Checkpoint: a local folder or a Hub id. None: the bundled one, which needs no
    network. The first call that needs the model loads it, once per process."""

    scanner: SkipJsonSchema[SkipValidation[Scanner | None]] = None
    """A loaded scanner, instead of ``model``."""

    scorer: Any = None
    """Anything else with ``score_units(query, text, units)``, such as a baseline,
    instead of ``model``."""

    backend: str = "auto"
    """What computes the model's layers, as for `Scanner.from_pretrained`."""

    device: str = "auto"
    """"auto" takes CUDA, then MPS, then the CPU."""

    dtype: str = "auto"
    """"float32", "bfloat16", or "auto": bfloat16 where the hardware multiplies it
    natively and faster."""

    model_kwargs: dict[str, Any] = Field(default_factory=dict, repr=False)
    """Further arguments of `Scanner.from_pretrained`.

    A ``token`` among them is never shown, stored or pickled.
    """

    threshold: SkipValidation[float | None] = None
    """Minimum score, from 0 to 1, inclusive; None for no limit."""

    require_answer: SkipValidation[float | None] = None
    """Minimum probability that a document answers the question, from 0 to 1; others
    give no results."""

    max_tokens: SkipValidation[int | None] = None
    """Token budget of all results together, with the metadata that LlamaIndex sends
    with each, or of the whole ``prompt``; None for no budget."""

    prompt: SkipJsonSchema[Prompt] | None = None
    """A function of a question and its results that returns the text for a language
    model."""

    count_tokens: SkipValidation[SkipJsonSchema[Callable[[str], int]] | str | None] = (
        None
    )
    """Token counter: a callable or the name of a tiktoken encoding.

    None: the scanner's own tokenizer.
    """

    context_sentences: SkipValidation[int] = 0
    """Neighbours added on each side of each sentence; they count against
    ``max_tokens`` but not against the maximum number of sentences."""

    order: SkipValidation[Order] = "score"
    """``"score"``, best first, or ``"document"``, as in the documents."""

    merge_adjacent: SkipValidation[bool] = False
    """Merge adjacent sentences into one result."""

    diversity: SkipValidation[float] = 1.0
    """Below 1, sentences that repeat better ones are passed over; see
    `ScanResult.select`."""

    always_keep: SkipValidation[Sequence[str] | Callable[[str], bool] | None] = None
    """Regular expressions, or a function: sentences that match are also kept,
    whatever their score."""

    batch_size: int = Field(default=64, ge=1, strict=True)
    """Number of documents given to the scorer at a time."""

    return_nodes: ReturnNodes = "sentence"
    """What to return: sentences; "node": the documents or nodes that contain
    selected sentences, with the score of their best one, as a reranker does; or
    "pruned": these, cut down to the selected sentences. Sentences are selected
    first, by all other fields, which count sentences; documents without a selected
    one are dropped."""

    keep_retrieval_score: bool = False
    """Keep the score of an earlier stage with each result."""

    @field_validator("device", "dtype", mode="before")
    @classmethod
    def _as_name(cls, value: object) -> object:
        return str(value).removeprefix("torch.")  # also accepts torch's own objects

    @model_validator(mode="after")
    def _check(self) -> Self:
        choice = self._search().choice
        if (
            choice.scorer is None and choice.scanner is None
        ):  # only here: the folder may move after loading
            Scanner.check_names(
                self.model, device=self.device, dtype=self.dtype, backend=self.backend
            )
        return self

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        memo = {} if memo is None else memo
        shared = [
            *(getattr(self, name) for name in self.shared_by_copies),
            *self.model_kwargs.values(),
        ]
        memo.update((id(value), value) for value in shared)
        return super().__deepcopy__(memo)

    @classmethod
    def __get_pydantic_core_schema__(
        cls,
        source: Any,  # noqa: ANN401
        handler: GetCoreSchemaHandler,
    ) -> CoreSchema:
        # Before all other validators, so that no error holds the token, not even in its
        # input.
        return no_info_before_validator_function(hide_token, handler(source))

    def _search(self, arguments: Mapping[str, Any] | None = None) -> SentenceSearch:
        """The search with the values of the fields.

        ``arguments`` of one call override them. Loads nothing.

        ``ValueError`` for a value out of range, several scorers, or a missing token
        counter; ``TypeError`` for a scorer that cannot score.
        """
        options = {**self.__dict__, **(arguments or {})}
        choice = ScorerChoice.of(options)
        limits = dict(zip(("top_k", "top_k_per_text"), self.limits, strict=True))
        selection = Selection.of(
            options,
            limits | {"context": "context_sentences", "merge": "merge_adjacent"},
        )
        counter = selection.count_tokens
        if counter is None and choice.scorer is not None:
            counter = choice.scorer.count_tokens
        if choice.scorer is not None and counter is None:
            name = type(choice.scorer).__name__
            budget_counter(selection.max_tokens, None, name)
        own = ("batch_size", "return_nodes", "keep_retrieval_score", "prompt")
        return SentenceSearch(choice, selection, *(options[name] for name in own))


class RetrieverFields(ScanFields):
    """The fields of the retrievers of both frameworks: what chooses the documents to read, and how many."""

    other_stages: ClassVar[tuple[type, str]]
    """The class of the framework's first stages, and its description in errors."""

    first_stage: SkipValidation[Any] = "bm25"
    """What chooses the documents to read. "bm25": BM25 of their sentences, and with
    an encoder also their best sentence's meaning (then all texts are encoded once,
    which takes minutes for a thousand). "none": all are read. A retriever of the
    framework: the documents that contain what it finds are read, or else what it
    finds."""

    retriever: SkipValidation[Any] = None
    """Another name of ``first_stage`` for a retriever."""

    read_documents: SkipValidation[int | None] = 10
    """Maximum number of documents that are read for a question after a first stage;
    None for no bound."""

    read_tokens: SkipValidation[ReadTokens] = "auto"
    """Maximum number of their tokens; "auto": 200,000, on a CPU 100,000; None for no
    bound. Four ASCII characters, or a UTF-8 byte of another, count as one. A
    document that would exceed it is left out, except the best one."""

    @property
    def stage(
        self,
    ) -> Any:  # noqa: ANN401 - of the framework's class, or the name of one of ours
        """The first stage, under whichever name it was given."""
        if self.retriever is not None:
            return self.retriever
        return "bm25" if self.first_stage is None else self.first_stage

    @model_validator(mode="after")
    def _check_first_stage(self) -> Self:
        kind, expected = self.other_stages
        name = "first_stage" if self.retriever is None else "retriever"
        if self.retriever is not None and "first_stage" in self.model_fields_set:
            raise ValueError(
                "retriever: got first_stage as well; expected one of them: they mean"
                " the same"
            )
        if isinstance(self.stage, str) and self.stage not in get_args(OwnFirstStage):
            raise ValueError(
                f'{name}: got {self.stage!r}; expected "bm25", "none" or a retriever'
            )
        if not isinstance(self.stage, str | kind):
            raise TypeError(
                f"{name}: got {type(self.stage).__name__}; expected {expected}"
            )
        return self

    def _search(self, arguments: Mapping[str, Any] | None = None) -> SentenceSearch:
        bounds = ReadBounds(self.read_documents, self.read_tokens)
        return replace(
            super()._search(arguments), first_stage=self.stage, bounds=bounds
        )
