"""Load scorers by their names on the command line and in evaluations."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from spscanner_rag import baselines  # a module is imported when its name is used
from spscanner_rag.baselines.base import UnitKind, segmenter_of
from spscanner_rag.scorers import Scorer
from spscanner_rag.text.units import Segmenter

KINDS = {
    "scanner": "scanner or scanner:MODEL, the Single-Pass Scanner (default: the bundled checkpoint)",
    "bm25": "bm25",
    "dense": "dense or dense:MODEL, an embedding model (default: all-MiniLM-L6-v2)",
    "latechunking": "latechunking or latechunking:MODEL, token states of a BERT-like embedding model, pooled for "
    "each sentence in its context (default: all-MiniLM-L6-v2)",
    "crossencoder": "crossencoder:MODEL, a sentence-transformers cross-encoder",
    "lateinteraction": "lateinteraction or lateinteraction:MODEL, token vectors of a ColBERT or another embedding "
    "model (default: all-MiniLM-L6-v2)",
    "mamba": "mamba:MODEL, a Mamba-1 or Mamba-2 reranker",
    "propositions": "propositions:MODEL, propositions by a seq2seq model, ranked by all-MiniLM-L6-v2",
    "remote": "remote:URL, a scanner behind `spscanner serve` (its token: the variable SPSCANNER_TOKEN)",
    "blocksearch": "blocksearch:MODEL, a language model that reads all units and answers with a code",
    "hybrid": "hybrid:A+B, the sum of the standardized scores of two or more of these",
    "cascade": "cascade:A>B@M, where B scores the M best units of A (default: 50), or cascade:A>B@Ntokens, where "
    "B reads N tokens of each unit, in the sentences that A scores best",
}

_ALONE = ("scanner", "bm25", "dense", "latechunking", "lateinteraction")  # need no model in the name

_STAGES = re.compile(r"(?P<first>[^>]+)>(?P<second>.+?)(?:@(?P<best>[1-9]\d{0,8})(?P<tokens>tokens)?)?")


class NameParts(NamedTuple):
    """The parts of a scorer's name, such as ``dense:MODEL``."""

    kind: str
    model: str  # "" if the name has none
    scorers: tuple[str, ...]  # names of its parts: the scorers that a hybrid adds, the stages of a cascade
    bound: Mapping[str, int]  # ``best`` or ``tokens`` of a cascade, from after the @; empty if there is none

    @classmethod
    def of(cls, name: str) -> Self:
        """Split a name, whether or not such a scorer exists."""
        kind, _, model = name.strip().partition(":")
        if kind == "cascade" and (stages := _STAGES.fullmatch(model)):
            bound = {stages["tokens"] or "best": int(stages["best"])} if stages["best"] else {}
            return cls(kind, model, (stages["first"], stages["second"]), bound)
        return cls(kind, model, tuple(model.split("+")) if kind == "hybrid" else (), {})


@dataclass(frozen=True, slots=True)
class Options:
    """Options for loading scorers by name; see `Baseline` and `Scanner.from_pretrained`."""

    unit: UnitKind | Segmenter = "sentence"  # for a scanner, "sentence" means its own units
    device: str = "auto"
    dtype: str = "auto"
    trust_remote_code: bool = False  # whether models from the Hub may run their own code
    titles: Mapping[str, str] | None = None  # titles of documents by their text, for `Propositions`
    tokenizer: str | None = None  # for scanners that are named with a model
    keep_texts: int = 4  # number of texts of which BM25 and dense keep an index for further questions


def scorer_of(name: str, options: Options = Options()) -> Scorer:
    """Load a scorer by a name in one of the forms of `KINDS`; errors list these, or say what to install."""
    check_name(name)
    kind, model, parts, bound = NameParts.of(name)
    unit, device, dtype, keep = options.unit, options.device, options.dtype, options.keep_texts
    # None lets sentence-transformers choose
    loading: dict[str, Any] = {"device": None if device == "auto" else device}
    trusted: dict[str, Any] = {"trust_remote_code": options.trust_remote_code}
    match kind:
        case "scanner":
            from spscanner_rag.retrieval.shared_scanners import shared_scanner

            own: dict[str, Any] = {} if unit == "sentence" else {"segmenter": segmenter_of(unit)}
            if model and options.tokenizer is not None:
                own["tokenizer"] = options.tokenizer
            return shared_scanner(model or None, device=device, dtype=dtype, **own)
        case "bm25":
            return baselines.BM25(unit, keep_texts=keep)
        case "dense":
            return baselines.Dense(model or "minilm", unit, **loading, **trusted, keep_texts=keep)
        case "latechunking":
            return baselines.LateChunking(model or "minilm", unit, keep_texts=keep)
        case "crossencoder":
            dtype = "float32" if dtype == "auto" else dtype
            return baselines.CrossEncoder(model, unit, device=device, dtype=dtype, **trusted)
        case "lateinteraction":
            return baselines.LateInteraction(model or "minilm", unit, **loading, **trusted)
        case "mamba":
            return baselines.MambaReranker(model, unit, device=device, dtype=dtype)
        case "remote":
            from spscanner_rag.baselines.remote_scanner import RemoteScanner

            return RemoteScanner(model)
        case "blocksearch":
            from spscanner_rag.lab.in_context.block_search import BlockSearch

            return BlockSearch(model, unit, device=device, keep_texts=keep)
        case "propositions":
            dense = baselines.Dense(**loading)
            return baselines.Propositions(model, dense, unit, titles=options.titles, device=device)
        case "cascade":
            first, second = (scorer_of(part, options) for part in parts)
            return baselines.Cascade(first, second, **bound, unit=unit)
        case _:
            return baselines.Hybrid([scorer_of(part, options) for part in parts])


def check_name(name: str) -> None:
    """Raise ``ValueError`` for an unknown name, and list the known ones. Nothing is loaded."""
    kind, model, parts, _ = NameParts.of(name)
    if kind == "remote" and "@" in model:
        raise ValueError(
            "retriever 'remote': got an address with a user or a password, which every report would show; "
            f"expected {KINDS[kind]}"
        )
    if kind not in KINDS:
        raise ValueError(f"retriever {name!r} does not exist; expected one of: {'; '.join(KINDS.values())}")
    lacks_model = not model and (kind not in _ALONE or ":" in name)
    if lacks_model or (kind == "bm25" and model) or (kind == "cascade" and not parts):
        raise ValueError(f"got the retriever {name!r}; expected {KINDS[kind]}")
    for part in parts:
        check_name(part)


def units_for(name: str, units: Sequence[str]) -> Sequence[str]:
    """Return the units to evaluate a retriever with: only sentences for a scanner, which was trained on them."""
    return ["sentence"] if NameParts.of(name).kind in ("scanner", "remote") else units
