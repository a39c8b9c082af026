"""Load scorers by the names that the command line and the evaluation use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from spscanner_rag import baselines  # its names import their modules when they are used
from spscanner_rag.baselines.units import UnitKind, segmenter_of
from spscanner_rag.scorers import Scorer
from spscanner_rag.text.units import Segmenter

KINDS = {
    "scanner": "scanner or scanner:MODEL, the Single-Pass Scanner (default: the bundled checkpoint)",
    "bm25": "bm25",
    "dense": "dense or dense:MODEL, an embedding model (default: all-MiniLM-L6-v2)",
    "crossencoder": "crossencoder:MODEL, a sentence-transformers cross-encoder",
    "mamba": "mamba:MODEL, a Mamba-2 reranker",
    "propositions": "propositions:MODEL, propositions by a seq2seq model, ranked by all-MiniLM-L6-v2",
    "hybrid": "hybrid:A+B, the standardized scores of two or more of these added",
}


class NameParts(NamedTuple):
    """The parts of a scorer's name, such as ``dense:MODEL``."""

    kind: str
    model: str  # "" if the name has none
    scorers: tuple[str, ...]  # names of what a hybrid adds; empty for other kinds

    @classmethod
    def of(cls, name: str) -> Self:
        """Split a name, which need not be one that exists."""
        kind, _, model = name.strip().partition(":")
        return cls(kind, model, tuple(model.split("+")) if kind == "hybrid" else ())


@dataclass(frozen=True, slots=True)
class Options:
    """Options for loading scorers by name; see `Baseline` and `Scanner.from_pretrained`."""

    unit: UnitKind | Segmenter = "sentence"  # for a scanner, "sentence" means its own units
    device: str = "auto"
    dtype: str = "auto"
    trust_remote_code: bool = False  # whether models from the Hub may run their own code
    titles: Mapping[str, str] | None = None  # titles of documents by their text, for `Propositions`
    keep_texts: int = 4  # of how many texts BM25 and dense keep an index for further questions


def scorer_of(name: str, options: Options = Options()) -> Scorer:
    """Load the scorer with a name of one of the forms in `KINDS`.

    Raises
    ------
    ValueError
        For an unknown name; the message lists the known ones.
    ImportError
        If an extra is missing; the message says how to install it.
    """
    check_name(name)
    kind, model, parts = NameParts.of(name)
    unit, device, dtype, trusted = options.unit, options.device, options.dtype, options.trust_remote_code
    keep = options.keep_texts
    own_device = None if device == "auto" else device  # None: sentence-transformers chooses
    match kind:
        case "scanner":
            from spscanner_rag.retrieval.shared_scanners import shared_scanner

            own: dict[str, Any] = {} if unit == "sentence" else {"segmenter": segmenter_of(unit)}
            return shared_scanner(model or None, device=device, dtype=dtype, **own)
        case "bm25":
            return baselines.BM25(unit, keep_texts=keep)
        case "dense":
            return baselines.Dense(
                model or "minilm", unit, device=own_device, trust_remote_code=trusted, keep_texts=keep
            )
        case "crossencoder":
            dtype = "float32" if dtype == "auto" else dtype
            return baselines.CrossEncoder(model, unit, device=device, dtype=dtype, trust_remote_code=trusted)
        case "mamba":
            return baselines.MambaReranker(model, unit, device=device, dtype=dtype)
        case "propositions":
            dense = baselines.Dense(device=own_device)
            return baselines.Propositions(model, dense, unit, headings=options.titles, device=device)
        case _:
            return baselines.Hybrid([scorer_of(part, options) for part in parts])


def check_name(name: str) -> None:
    """Raise ``ValueError`` for an unknown name, and list the known ones. Nothing is loaded."""
    kind, model, parts = NameParts.of(name)
    if kind not in KINDS or (":" in name and not model):
        raise ValueError(f"retriever {name!r} does not exist; expected one of: {'; '.join(KINDS.values())}")
    if kind == "bm25" and model:
        raise ValueError(f"retriever {name!r}: bm25 takes no model name; expected {KINDS[kind]}")
    if not model and kind in ("crossencoder", "mamba", "propositions", "hybrid"):
        lacks = "the retrievers to add" if kind == "hybrid" else "a model name"
        raise ValueError(f"retriever {name!r} needs {lacks}; expected {KINDS[kind]}")
    for part in parts:
        check_name(part)


def check_names(names: list[str]) -> None:
    """Raise ``ValueError`` for an empty list, a repeated name or an unknown one."""
    if not names:
        raise ValueError(f"got no retriever; expected at least one of: {'; '.join(KINDS.values())}")
    if len(set(names)) < len(names):
        raise ValueError(f"got a retriever twice: {', '.join(names)}; expected each once")
    for name in names:
        check_name(name)


def units_for(name: str, units: Sequence[str]) -> Sequence[str]:
    """The units to evaluate a retriever with; a scanner was trained on sentences and scores only those."""
    return ["sentence"] if NameParts.of(name).kind == "scanner" else units
