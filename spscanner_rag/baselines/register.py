"""The kinds of retrievers that a name can mean, such as ``bm25`` or ``dense:MODEL``.

A new kind is one entry of `BUILT_IN`: the help, the messages, the checks of names and
the loading follow from it. Another distribution adds kinds through the entry-point
group ``spscanner.retrievers``, whose objects are `RetrieverKind` instances.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spscanner_rag import baselines  # a module is imported when its name is used

# The command line's help imports this module, and must not load what these need.
if TYPE_CHECKING:
    from spscanner_rag.baselines.unit_kinds import UnitKind
    from spscanner_rag.scorers import Read, Scorer
    from spscanner_rag.text.units import Segmenter

ENTRY_POINTS = "spscanner.retrievers"


class ModelName(Enum):
    """Whether the name of a kind is followed by ``:MODEL``."""

    NONE = "none"
    OPTIONAL = "optional"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """Options for loading scorers by name.

    See `Baseline` and `Scanner.from_pretrained`.

    Parameters
    ----------
    unit : what is ranked; for a scanner, "sentence" means its own units
    device : "auto", "cpu", "cuda", "cuda:N" or "mps"
    dtype : "auto", "float32" or "bfloat16"
    trust_remote_code : whether models from the Hub may run their own code
    titles : titles of documents by their text, for `Propositions`
    tokenizer : for scanners that are named with a model
    read : what a scanner reads, as for `Scanner.scan`
    keep_texts : number of texts of which BM25 and dense keep an index for further
    questions
    """

    unit: "UnitKind | Segmenter" = "sentence"
    device: str = "auto"
    dtype: str = "auto"
    trust_remote_code: bool = False
    titles: Mapping[str, str] | None = None
    tokenizer: str | None = None
    read: "Read" = "auto"
    keep_texts: int = 4

    @property
    def torch_device(self) -> str | None:
        """The device for sentence-transformers, which chooses one itself for None."""
        return None if self.device == "auto" else self.device


@dataclass(frozen=True, slots=True)
class RetrieverKind:
    """What a retriever's name means and how it is loaded.

    Parameters
    ----------
    name : the part of a retriever's name before the colon
    usage : how a user writes it, and what it is; shown by help and by errors
    load : makes the scorer of a model name ("" if none was given)
    model : whether a model's name follows the colon
    has_index : whether it looks questions up in an index that it made of the texts
    only_sentences : whether it ranks sentences whatever units are asked for
    gives_probabilities : whether the sigmoid of its scores is a probability
    """

    name: str
    usage: str
    load: "Callable[[str, LoadOptions], Scorer]"
    model: ModelName = ModelName.OPTIONAL
    has_index: bool = False
    only_sentences: bool = False
    gives_probabilities: bool = False

    @property
    def short_usage(self) -> str:
        """How a user writes the name, such as ``dense[:MODEL]``."""
        match self.model:
            case ModelName.NONE:
                return self.name
            case ModelName.OPTIONAL:
                return f"{self.name}[:MODEL]"
            case ModelName.REQUIRED:
                return self.usage.partition(",")[0]


def _load_scanner(model: str, options: LoadOptions) -> "Scorer":
    from spscanner_rag.baselines.unit_kinds import segmenter_of
    from spscanner_rag.retrieval.shared_scanners import shared_scanner

    settings: dict[str, Any] = {}
    if options.unit != "sentence":
        settings["segmenter"] = segmenter_of(options.unit)
    if model and options.tokenizer is not None:
        settings["tokenizer"] = options.tokenizer
    scanner = shared_scanner(
        model or None, device=options.device, dtype=options.dtype, **settings
    )
    return scanner.with_read(options.read)


def _load_bm25(model: str, options: LoadOptions) -> "Scorer":
    return baselines.BM25(options.unit, keep_texts=options.keep_texts)


def _load_dense(model: str, options: LoadOptions) -> "Scorer":
    return baselines.Dense(
        model or "minilm",
        options.unit,
        device=options.torch_device,
        trust_remote_code=options.trust_remote_code,
        keep_texts=options.keep_texts,
    )


def _load_late_chunking(model: str, options: LoadOptions) -> "Scorer":
    return baselines.LateChunking(
        model or "minilm", options.unit, keep_texts=options.keep_texts
    )


def _load_late_interaction(model: str, options: LoadOptions) -> "Scorer":
    return baselines.LateInteraction(
        model or "minilm",
        options.unit,
        device=options.torch_device,
        trust_remote_code=options.trust_remote_code,
    )


def _load_cross_encoder(model: str, options: LoadOptions) -> "Scorer":
    return baselines.CrossEncoder(
        model,
        options.unit,
        device=options.device,
        dtype="float32" if options.dtype == "auto" else options.dtype,
        trust_remote_code=options.trust_remote_code,
    )


def _load_mamba_reranker(model: str, options: LoadOptions) -> "Scorer":
    return baselines.MambaReranker(
        model, options.unit, device=options.device, dtype=options.dtype
    )


def _load_propositions(model: str, options: LoadOptions) -> "Scorer":
    decomposer, embedder = _with_embedder(model)
    dense = baselines.Dense(
        embedder or "minilm",
        device=options.torch_device,
        trust_remote_code=options.trust_remote_code,
    )
    propositions = baselines.Propositions(
        decomposer, dense, options.unit, titles=options.titles, device=options.device
    )
    propositions.name = f"propositions:{model}"
    return propositions


def _with_embedder(model: str) -> tuple[str, str]:
    """Split MODEL@EMBEDDER.

    A folder may have an @ in its name.
    """
    if Path(model).expanduser().is_dir():
        return model, ""
    decomposer, at, embedder = model.rpartition("@")
    return (decomposer, embedder) if at else (model, "")


def _load_trimwise(model: str, options: LoadOptions) -> "Scorer":
    return baselines.Trimwise(options.unit)


def _load_remote(model: str, options: LoadOptions) -> "Scorer":
    # "auto" leaves it to the server
    read = None if options.read == "auto" else options.read
    return baselines.RemoteScanner(model, read=read)


BUILT_IN = (
    RetrieverKind(
        "scanner",
        "scanner or scanner:MODEL, the Single-Pass Scanner (default: the bundled "
        "checkpoint)",
        _load_scanner,
        only_sentences=True,
        gives_probabilities=True,
    ),
    RetrieverKind("bm25", "bm25", _load_bm25, model=ModelName.NONE, has_index=True),
    RetrieverKind(
        "dense",
        "dense or dense:MODEL, an embedding model (default: all-MiniLM-L6-v2)",
        _load_dense,
        has_index=True,
    ),
    RetrieverKind(
        "latechunking",
        "latechunking or latechunking:MODEL, token states of a BERT-like embedding "
        "model, pooled for each sentence in its context (default: all-MiniLM-L6-v2)",
        _load_late_chunking,
    ),
    RetrieverKind(
        "crossencoder",
        "crossencoder:MODEL, a sentence-transformers cross-encoder",
        _load_cross_encoder,
        model=ModelName.REQUIRED,
    ),
    RetrieverKind(
        "lateinteraction",
        "lateinteraction or lateinteraction:MODEL, token vectors of a ColBERT or "
        "another embedding model (default: all-MiniLM-L6-v2)",
        _load_late_interaction,
    ),
    RetrieverKind(
        "mamba",
        "mamba:MODEL, a Mamba-1 or Mamba-2 reranker",
        _load_mamba_reranker,
        model=ModelName.REQUIRED,
    ),
    RetrieverKind(
        "propositions",
        "propositions:MODEL or propositions:MODEL@EMBEDDER, propositions by a seq2seq "
        "model, ranked as dense:EMBEDDER does (default: all-MiniLM-L6-v2)",
        _load_propositions,
        model=ModelName.REQUIRED,
    ),
    RetrieverKind("trimwise", "trimwise", _load_trimwise, model=ModelName.NONE),
    RetrieverKind(
        "remote",
        "remote:URL, a scanner behind `spscanner serve` (its token: the variable "
        "SPSCANNER_TOKEN)",
        _load_remote,
        model=ModelName.REQUIRED,
        only_sentences=True,
        gives_probabilities=True,
    ),
)
"""Every kind of this distribution that is a single retriever."""


@cache
def retriever_kinds() -> Mapping[str, RetrieverKind]:
    """Return every known kind by its name, those of other distributions included.

    Examples
    --------
    >>> from spscanner_rag.baselines.register import retriever_kinds
    >>> retriever_kinds()["dense"].short_usage
    'dense[:MODEL]'
    """
    kinds = {kind.name: kind for kind in BUILT_IN}
    for entry_point in entry_points(group=ENTRY_POINTS):
        kind: RetrieverKind = entry_point.load()
        kinds.setdefault(kind.name, kind)
    return kinds
