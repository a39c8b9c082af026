"""Other retrievers to compare the scanner with. Each is a `Scorer`."""

from importlib import import_module
from typing import TYPE_CHECKING

if (
    TYPE_CHECKING
):  # at run time a class is imported on first use: most need optional packages or torch
    from spscanner_rag.baselines.base import Baseline
    from spscanner_rag.baselines.bm25 import BM25
    from spscanner_rag.baselines.combined import Cascade, Hybrid
    from spscanner_rag.baselines.dense import Dense, LateChunking, LateInteraction
    from spscanner_rag.baselines.propositions import Propositions
    from spscanner_rag.baselines.remote_scanner import RemoteScanner
    from spscanner_rag.baselines.rerankers import CrossEncoder, MambaReranker

_MODULES = {
    "BM25": "bm25", "Baseline": "base", "Cascade": "combined", "CrossEncoder": "rerankers", "Dense": "dense",
    "Hybrid": "combined", "LateChunking": "dense", "LateInteraction": "dense", "MambaReranker": "rerankers",
    "Propositions": "propositions", "RemoteScanner": "remote_scanner",
}  # fmt: skip
__all__ = [
    "BM25", "Baseline", "Cascade", "CrossEncoder", "Dense", "Hybrid", "LateChunking", "LateInteraction",
    "MambaReranker", "Propositions", "RemoteScanner",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
