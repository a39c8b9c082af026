"""The fields that the pydantic classes of both frameworks share: which model scores, and what is returned."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, SkipValidation, model_validator
from pydantic.json_schema import SkipJsonSchema
from pydantic_core.core_schema import CoreSchema, no_info_before_validator_function

from spscanner_rag.results.selection import Order
from spscanner_rag.retrieval.answers import ReturnNodes
from spscanner_rag.retrieval.options import Prompt, SentenceSearch
from spscanner_rag.retrieval.shared_scanners import hide_token_in_fields
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Scorer


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
    """The fields whose values deep copies share: weights should not be in memory twice."""

    model: str | Path | None = None
    """Checkpoint: a local folder or a Hub id. None: the bundled one, which needs no network. The first call that
    needs it loads it, once in a process."""

    scanner: SkipValidation[Scanner | None] = None
    """A loaded scanner, instead of ``model``."""

    scorer: SkipValidation[Scorer | None] = None
    """Anything else with ``score_units(query, text, units)``, such as a baseline, instead of ``model``."""

    backend: str = "auto"
    """What computes the state-space operator, as for `Scanner.from_pretrained`."""

    device: str = "auto"
    """"auto" takes CUDA, then MPS, then the CPU."""

    dtype: str = "auto"
    """"float32", "bfloat16", or "auto": bfloat16 where the hardware multiplies it natively and faster."""

    model_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Further arguments of `Scanner.from_pretrained`. A ``token`` among them is never shown, stored or pickled."""

    threshold: SkipValidation[float | None] = None
    """Minimum score, from 0 to 1, inclusive; None for no limit."""

    require_answer: SkipValidation[float | None] = None
    """Minimum probability that a document answers, from 0 to 1; what is below gives no result."""

    max_tokens: SkipValidation[int | None] = None
    """Token budget of all results together, with the metadata that LlamaIndex sends with each, or of the whole
    ``prompt``; None for none."""

    prompt: SkipValidation[SkipJsonSchema[Prompt] | None] = None
    """A function of a question and its results that returns the text that a language model gets."""

    count_tokens: SkipValidation[SkipJsonSchema[Callable[[str], int]] | str | None] = None
    """Token counter: a callable or the name of a tiktoken encoding. None: the scanner's own tokenizer."""

    context_sentences: SkipValidation[int] = 0
    """Neighbours added on each side of each sentence; they count for ``max_tokens`` but not for the number of
    sentences."""

    order: SkipValidation[Order] = "score"
    """``"score"``, best first, or ``"document"``, as in the documents."""

    merge_adjacent: SkipValidation[bool] = False
    """Merge adjacent sentences into one result."""

    diversity: SkipValidation[float] = 1.0
    """Below 1, sentences that repeat better ones are passed over; see `ScanResult.select`."""

    always_keep: SkipValidation[Sequence[str] | Callable[[str], bool] | None] = None
    """Regular expressions, or a function: sentences that have one are kept too, whatever their score is."""

    batch_size: int = Field(default=64, ge=1, strict=True)
    """Number of documents given to the scorer at a time."""

    return_nodes: ReturnNodes = "sentence"
    """What to return: sentences; "node": the documents or nodes in which selected sentences are, with the score of
    their best one, as a reranker does; or "pruned": these, cut down to the selected sentences. Sentences are
    selected first, by all other fields, which count sentences; documents without one are dropped."""

    keep_retrieval_score: bool = False
    """Keep the score of an earlier stage with each result."""

    keep_compression: bool = False
    """Count the tokens of all results of a question together, and of all texts that were read for it, and keep
    both numbers with each result."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._search().choice.check_names()
        return self

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        memo = {} if memo is None else memo
        shared = [*(getattr(self, name) for name in self.shared_by_copies), *self.model_kwargs.values()]
        memo.update((id(value), value) for value in shared)
        return super().__deepcopy__(memo)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:  # noqa: ANN401
        # Before all other validators, so that no error holds the token, not even in its input.
        return no_info_before_validator_function(hide_token_in_fields, handler(source))

    def _search(self, arguments: Mapping[str, Any] | None = None) -> SentenceSearch:
        """The search with the values of the fields; ``arguments`` of one call override them."""
        top_k, top_k_per_text = self.limits
        options = {**self.__dict__, **(arguments or {})}
        return SentenceSearch.of(options, top_k=top_k, top_k_per_text=top_k_per_text)
