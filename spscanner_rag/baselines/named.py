"""Scorers by the words that the command line and the evaluation know them by."""

from collections.abc import Callable, Sequence
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
        As for `Scanner.from_pretrained`.
    trust_remote_code
        Let models from the Hub run their own code.
    """

    unit: UnitKind | Segmenter = "sentence"
    device: str = "auto"
    dtype: str = "auto"
    trust_remote_code: bool = False

    @property
    def torch_device(self) -> str | None:
        """For sentence-transformers, which chooses by itself if none is given."""
        return None if self.device == "auto" else self.device


def scorer_of(name: str, options: Options = Options()) -> Scorer:
    """The scorer that a word stands for, loaded.

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
    scorer: Scorer = _MAKERS[kind](model or None, options)
    return scorer


def check_name(name: str) -> None:
    """Raise ``ValueError`` for a name that does not exist; lists those that do. Nothing is loaded."""
    kind, colon, model = name.strip().partition(":")
    if kind not in _MAKERS or (colon and not model):
        raise ValueError(f"retriever {name!r} does not exist; expected one of: {'; '.join(KINDS.values())}")
    needs_model = kind in ("crossencoder", "mamba", "propositions", "hybrid")
    if bool(model) < needs_model or (model and kind == "bm25"):
        raise ValueError(f"retriever {name!r} is not complete or too long; expected {KINDS[kind]}")
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
    """The units that a retriever is asked for; a scanner has sentences only, which it was trained on."""
    return ["sentence"] if name.partition(":")[0] == "scanner" else units


def _scanner(model: str | None, options: Options) -> object:
    from spscanner_rag.retrieval.shared_scanners import shared_scanner

    own: dict[str, Any] = {} if options.unit == "sentence" else {"segmenter": segmenter_of(options.unit)}
    return shared_scanner(model, device=options.device, dtype=options.dtype, **own)


def _bm25(model: str | None, options: Options) -> object:
    from spscanner_rag.baselines.bm25 import BM25

    return BM25(options.unit)


def _dense(model: str | None, options: Options) -> object:
    from spscanner_rag.baselines.dense import Dense

    return Dense(
        model or "minilm",
        options.unit,
        device=options.torch_device,
        trust_remote_code=options.trust_remote_code,
    )


def _cross_encoder(model: str | None, options: Options) -> object:
    from spscanner_rag.baselines.cross_encoder import CrossEncoder

    return CrossEncoder(
        str(model),
        options.unit,
        device=options.device,
        dtype="float32" if options.dtype == "auto" else options.dtype,
        trust_remote_code=options.trust_remote_code,
    )


def _mamba(model: str | None, options: Options) -> object:
    from spscanner_rag.baselines.mamba_reranker import MambaReranker

    return MambaReranker(str(model), options.unit, device=options.device, dtype=options.dtype)


def _propositions(model: str | None, options: Options) -> object:
    from spscanner_rag.baselines.dense import Dense
    from spscanner_rag.baselines.propositions import Propositions

    dense = Dense(device=options.torch_device)
    return Propositions(str(model), dense, options.unit, device=options.device)


def _hybrid(model: str | None, options: Options) -> object:
    from spscanner_rag.baselines.hybrid import Hybrid

    return Hybrid([scorer_of(part, options) for part in str(model).split("+")])


_MAKERS: dict[str, Callable[[str | None, Options], Any]] = {
    "scanner": _scanner,
    "bm25": _bm25,
    "dense": _dense,
    "crossencoder": _cross_encoder,
    "mamba": _mamba,
    "propositions": _propositions,
    "hybrid": _hybrid,
}
