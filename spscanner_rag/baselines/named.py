"""Scorers by the names that the command line and the evaluation use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True, slots=True)
class Options:
    """How named scorers are loaded.

    Attributes
    ----------
    unit
        What is scored: "sentence" (the scanner's own units, for a scanner), "chunk", "passage", "document", or
        a segmenter.
    device, dtype
        See `Scanner.from_pretrained`.
    trust_remote_code
        Let models from the Hub run their own code.
    titles
        Titles of documents by their text, for `Propositions`.
    """

    unit: UnitKind | Segmenter = "sentence"
    device: str = "auto"
    dtype: str = "auto"
    trust_remote_code: bool = False
    titles: Mapping[str, str] | None = None

    @property
    def torch_device(self) -> str | None:
        """For sentence-transformers, which chooses by itself if none is given."""
        return None if self.device == "auto" else self.device


def scorer_of(name: str, options: Options = Options()) -> Scorer:
    """The scorer that a name stands for, loaded.

    Parameters
    ----------
    name
        One of the forms in `KINDS`.
    options

    Raises
    ------
    ValueError
        For a name that does not exist; lists those that do.
    ImportError
        If an extra is missing; names the line that installs it.
    """
    check_name(name)
    kind, _, model = name.strip().partition(":")
    unit, device, dtype = options.unit, options.device, options.dtype
    match kind:
        case "scanner":
            from spscanner_rag.retrieval.shared_scanners import shared_scanner

            own: dict[str, Any] = {} if unit == "sentence" else {"segmenter": segmenter_of(unit)}
            return shared_scanner(model or None, device=device, dtype=dtype, **own)
        case "bm25":
            from spscanner_rag.baselines.bm25 import BM25

            return BM25(unit)
        case "dense":
            from spscanner_rag.baselines.dense import Dense

            trusted = options.trust_remote_code
            return Dense(model or "minilm", unit, device=options.torch_device, trust_remote_code=trusted)
        case "crossencoder":
            from spscanner_rag.baselines.cross_encoder import CrossEncoder

            dtype = "float32" if dtype == "auto" else dtype
            trusted = options.trust_remote_code
            return CrossEncoder(model, unit, device=device, dtype=dtype, trust_remote_code=trusted)
        case "mamba":
            from spscanner_rag.baselines.mamba_reranker import MambaReranker

            return MambaReranker(model, unit, device=device, dtype=dtype)
        case "propositions":
            from spscanner_rag.baselines.dense import Dense
            from spscanner_rag.baselines.propositions import Propositions

            dense = Dense(device=options.torch_device)
            return Propositions(model, dense, unit, headings=options.titles, device=device)
        case _:
            from spscanner_rag.baselines.hybrid import Hybrid

            return Hybrid([scorer_of(part, options) for part in model.split("+")])


def check_name(name: str) -> None:
    """Raise ``ValueError`` for a name that does not exist; lists those that do. Nothing is loaded."""
    kind, colon, model = name.strip().partition(":")
    if kind not in KINDS or (colon and not model):
        raise ValueError(f"retriever {name!r} does not exist; expected one of: {'; '.join(KINDS.values())}")
    if kind == "bm25" and model:
        raise ValueError(f"retriever {name!r}: bm25 takes no model name; expected {KINDS[kind]}")
    if not model and kind in ("crossencoder", "mamba", "propositions", "hybrid"):
        lacks = "the retrievers to add" if kind == "hybrid" else "a model name"
        raise ValueError(f"retriever {name!r} needs {lacks}; expected {KINDS[kind]}")
    for part in model.split("+") if kind == "hybrid" else ():
        check_name(part)


def check_names(names: list[str]) -> None:
    """Raise ``ValueError`` for a list that is empty, has a name twice, or has one that does not exist."""
    if not names:
        raise ValueError(f"got no retriever; expected at least one of: {'; '.join(KINDS.values())}")
    if len(set(names)) < len(names):
        raise ValueError(f"got a retriever twice: {', '.join(names)}; expected each once")
    for name in names:
        check_name(name)


def units_for(name: str, units: Sequence[str]) -> Sequence[str]:
    """The units that a retriever is asked for; a scanner scores sentences only, as it was trained to."""
    return ["sentence"] if name.partition(":")[0] == "scanner" else units
