"""Baselines to hold the scanner against; each stands wherever a scorer is taken."""

from importlib import import_module

_MODULES = {
    "BM25": "bm25",
    "Baseline": "base",
    "CrossEncoder": "cross_encoder",
    "Dense": "dense",
    "Hybrid": "hybrid",
    "MambaReranker": "mamba_reranker",
    "Propositions": "propositions",
}
__all__ = ["BM25", "Baseline", "CrossEncoder", "Dense", "Hybrid", "MambaReranker", "Propositions"]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
