"""The fields that the pydantic classes of all frameworks share."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    SkipValidation,
    create_model,
    field_validator,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema
from pydantic_core.core_schema import CoreSchema, no_info_before_validator_function

from spscanner_rag.results import Selection
from spscanner_rag.results.selection import (
    SELECTION_OPTIONS,
    SELECTION_RULES,
    Order,
    SelectionRules,
)
from spscanner_rag.retrieval.hidden_token import hide_token
from spscanner_rag.retrieval.model_budget import Prompt
from spscanner_rag.retrieval.other_names import other_name_hint
from spscanner_rag.retrieval.scorer_choice import ScorerChoice
from spscanner_rag.retrieval.search import ReturnNodes, SentenceSearch
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Read
from spscanner_rag.text.token_counts import budget_counter


class _ModelFields(BaseModel):
    """Which model scores."""

    model_config = ConfigDict(
        arbitrary_types_allowed=True,
        extra="forbid",
        hide_input_in_errors=True,  # the input may hold an access token
        protected_namespaces=(),
        use_attribute_docstrings=True,
    )

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

    read: SkipValidation[Read] = "auto"
    """What is read of a text, as for `Scanner.scan`: "all", a share from 0 to 1 around
    the likeliest sentences, or "auto", what loses nothing."""

    model_kwargs: dict[str, Any] = Field(default_factory=dict, repr=False)
    """Further arguments of `Scanner.from_pretrained`.

    A ``token`` among them is never shown, stored or pickled.
    """

    @field_validator("device", "dtype", mode="before")
    @classmethod
    def _as_name(cls, value: object) -> object:
        return str(value).removeprefix("torch.")  # also accepts torch's own objects


def _rule_fields() -> dict[str, Any]:
    """The fields of `SelectionRules` for pydantic, whose values `Selection` checks."""
    fields: dict[str, Any] = {}
    for name, rule in SELECTION_RULES.items():
        declared = Field(default=rule.default, description=rule.meaning)
        fields[name] = (SkipValidation[rule.kind], declared)  # type: ignore[misc, name-defined]
    return fields


if not TYPE_CHECKING:
    _RuleFields = create_model("_RuleFields", __base__=_ModelFields, **_rule_fields())
else:

    class _RuleFields(SelectionRules, _ModelFields):
        """The rules of a selection, as type checkers and the API reference see them."""


class ScanFields(_RuleFields):
    """Which model scores, which sentences are selected, and what is returned.

    A subclass names in `limits` its fields for the maximum number of sentences.
    """

    limits: ClassVar[tuple[str, str]]
    """The fields with the maximum number of sentences, of all documents and of each."""

    shared_by_copies: ClassVar[tuple[str, ...]] = ("scanner", "scorer")
    """The fields whose values deep copies share: weights should not be in memory
    twice."""

    threshold: SkipValidation[float | None] = None
    """Minimum score, from 0 to 1, inclusive; None for no limit."""

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

    @model_validator(mode="before")
    @classmethod
    def _check_names(cls, values: object) -> object:
        """Refuse an unknown option with our name of it.

        Only its name is shown, since its value may be a secret.
        """
        if not isinstance(values, Mapping):
            return values
        option_names = set(cls.model_fields)
        option_names |= {
            field.alias for field in cls.model_fields.values() if field.alias
        }
        for name in values:
            if name not in option_names:
                hint = other_name_hint(str(name), sorted(option_names), cls.limits)
                raise ValueError(f"{name}: unknown option; {hint}")
        return values

    @model_validator(mode="after")
    def _check(self) -> Self:
        choice = self.sentence_search().choice
        # Only here, because the folder may move after loading.
        if choice.scorer is None and choice.scanner is None:
            Scanner.check_names(
                self.model, device=self.device, dtype=self.dtype, backend=self.backend
            )
        return self

    @classmethod
    def selection_names(cls) -> dict[str, str]:
        """The field of each option of `SELECTION_OPTIONS`."""
        names = {option: option for option in SELECTION_OPTIONS}
        names["top_k"], names["top_k_per_text"] = cls.limits
        names["context"] = "context_sentences"
        names["merge"] = "merge_adjacent"
        return names

    def sentence_search(
        self, arguments: Mapping[str, Any] | None = None
    ) -> SentenceSearch:
        """Make the search that the fields describe, without loading anything.

        Parameters
        ----------
        arguments : mapping, optional
            Values that override those of the fields in one call.

        Raises
        ------
        ValueError
            For a value out of range, several scorers, or a missing token counter.
        TypeError
            For a scorer that cannot score.
        """
        options = {**self.__dict__, **(arguments or {})}
        choice = ScorerChoice.of(options)
        selection = Selection.of(options, self.selection_names())
        if choice.scorer is not None and selection.count_tokens is None:
            owner = type(choice.scorer).__name__
            budget_counter(selection.max_tokens, choice.scorer.count_tokens, owner)
        return SentenceSearch(
            choice=choice,
            selection=selection,
            batch_size=options["batch_size"],
            return_nodes=options["return_nodes"],
            keep_retrieval_score=options["keep_retrieval_score"],
            prompt=options["prompt"],
        )

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        if memo is None:
            memo = {}
        shared = [getattr(self, name) for name in self.shared_by_copies]
        shared += self.model_kwargs.values()
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
