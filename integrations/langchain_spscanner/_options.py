"""The fields that retriever and compressor share, and the scan itself."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from langchain_core.documents import Document
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SkipValidation,
    field_serializer,
    field_validator,
    model_validator,
)

from langchain_spscanner._conversion import Text
from spscanner_rag.results.selection import Order
from spscanner_rag.retrieval.search import Selection, search, selection_named
from spscanner_rag.retrieval.shared_scanners import ScorerChoice, split_token
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Scorer

_NAMES = {
    "top_k": "k",
    "top_k_per_text": "k_per_document",
    "context": "context_sentences",
    "merge": "merge_adjacent",
}
"""Arguments of `Selection` that have another name here."""


class ScanOptions(BaseModel):
    """Which model scores, and which sentences are kept."""

    model_config = ConfigDict(
        arbitrary_types_allowed=True,
        extra="forbid",
        hide_input_in_errors=True,  # what was given may hold an access token
        protected_namespaces=(),
    )

    model: str | Path | None = None
    """Checkpoint: a local folder or a Hub id. None: the one that comes with the package, without network."""

    scanner: SkipValidation[Scanner | None] = None
    """A loaded scanner, in place of ``model``."""

    scorer: SkipValidation[Scorer | None] = None
    """Anything else that scores sentences, such as a baseline, in place of ``model``."""

    backend: str = "auto"
    """What computes the state-space operator, as for `Scanner.from_pretrained`."""

    device: str = "auto"
    """"auto" takes CUDA, then MPS, then the CPU."""

    dtype: str = "auto"
    """"float32", "bfloat16", "int8" on a CPU, or "auto": bfloat16 where the hardware multiplies it natively."""

    model_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Further arguments of `Scanner.from_pretrained`. A ``token`` among them is never shown or stored."""

    k: SkipValidation[int | float | None] = 50
    """Sentences at most; below 1 a share of all sentences, at least 10; None for no limit."""

    k_per_document: SkipValidation[int | None] = None
    """Sentences of each document at most, neighbours not counted; None for no limit."""

    threshold: SkipValidation[float | None] = None
    """The lowest score that is kept, from 0 to 1, inclusive; None for no limit."""

    max_tokens: SkipValidation[int | None] = None
    """Token budget of all results together; None for no budget."""

    count_tokens: SkipValidation[Callable[[str], int] | str | None] = None
    """What counts as a token: a callable or a tiktoken encoding. None: the scanner's own tokenizer."""

    context_sentences: SkipValidation[int] = 0
    """Neighbours added on each side of each sentence, on top of ``k``, inside ``max_tokens``."""

    order: SkipValidation[Order] = "score"
    """``"score"``, best first, or ``"document"``, as they stand in the documents."""

    merge_adjacent: SkipValidation[bool] = False
    """Make one result of adjacent sentences."""

    batch_size: int = Field(default=64, ge=1, strict=True)
    """Documents given to the scorer at a time."""

    document_key: str | None = "source"
    """Documents whose metadata agree under this key are read as one, such as the pages of a file, in the
    order of their page numbers where all have one. None: each is read alone."""

    keep_retrieval_score: bool = False
    """Keep the score of an earlier stage as ``spscanner_retrieval_score``."""

    @field_validator("model_kwargs")
    @classmethod
    def _hide_token(cls, value: dict[str, Any]) -> dict[str, Any]:
        parameters = inspect.signature(Scanner.from_pretrained).parameters
        allowed = set(parameters) - {"model", "device", "dtype", "backend"}
        for name in value:
            if name not in allowed:
                raise ValueError(
                    f"got {name!r}; expected arguments of Scanner.from_pretrained that are no field here: "
                    f"{', '.join(sorted(allowed))}"
                )
        options, token = split_token(value)
        return options if token.value is None else options | {"token": token}

    @field_serializer("model_kwargs")
    def _without_token(self, value: dict[str, Any]) -> dict[str, Any]:
        return split_token(value)[0]

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._choice().check()
        self._selection({})
        return self

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        # A copy scans with the same model; copying weights would cost as much memory again.
        memo = {} if memo is None else memo
        memo.update((id(shared), shared) for shared in (self.scanner, self.scorer) if shared is not None)
        return super().__deepcopy__(memo)

    def _choice(self) -> ScorerChoice:
        options, token = split_token(self.model_kwargs)
        return ScorerChoice(
            model=self.model,
            device=self.device,
            dtype=self.dtype,
            backend=self.backend,
            model_kwargs=options,
            token=token,
            scanner=self.scanner,
            scorer=self.scorer,
        )

    def _selection(self, changes: Mapping[str, Any]) -> Selection:
        """What is kept; ``changes`` are the arguments of one call, which come before the fields."""
        options = {name: changes.get(name, getattr(self, name)) for name in ("k", "threshold", "max_tokens")}
        if options["max_tokens"] is not None and self.count_tokens is None and not self._counts():
            raise ValueError(
                f"max_tokens: got a budget, but {type(self.scorer).__name__} does not count tokens; expected "
                'count_tokens as well, for example count_tokens="o200k_base"'
            )
        return selection_named(
            _NAMES,
            top_k=options["k"],
            threshold=options["threshold"],
            max_tokens=options["max_tokens"],
            count_tokens=self.count_tokens,
            context=self.context_sentences,
            order=self.order,
            merge=self.merge_adjacent,
            top_k_per_text=self.k_per_document,
        )

    def _counts(self) -> bool:
        return self.scorer is None or hasattr(self.scorer, "count_tokens")

    def _scan(
        self, query: str, texts: Sequence[Text], choose: Selection, cancelled: Callable[[], bool]
    ) -> list[Document]:
        texts = [text for text in texts if text.joined.text.strip()]
        if not texts:
            return []  # without loading a model
        hits = search(
            self._choice().resolve(),
            query,
            [text.joined for text in texts],
            choose,
            batch_size=self.batch_size,
            cancelled=cancelled,
        )
        return [texts[hit.joined].result(hit, self.keep_retrieval_score) for hit in hits]


def require_query(query: object) -> None:
    """Raise ``ValueError`` for no query or an empty one, and ``TypeError`` for one that is no string."""
    if query is None or (isinstance(query, str) and not query.strip()):
        raise ValueError(f"query: got {query!r}; expected a question or key words")
    if not isinstance(query, str):
        raise TypeError(f"query: got {type(query).__name__}; expected a string")


def never() -> bool:
    """For scans that nobody cancels."""
    return False
