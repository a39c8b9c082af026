"""Other retrievers to compare the scanner with. Each is a `Scorer`."""

from importlib import import_module
from typing import TYPE_CHECKING

from spscanner_rag.system.torch_absence import torch_needed_for

# At run time a class is imported on first use: most need optional packages or torch.
if TYPE_CHECKING:
    from spscanner_rag.baselines.baseline import Baseline
    from spscanner_rag.baselines.bm25 import BM25
    from spscanner_rag.baselines.cascade import Cascade
    from spscanner_rag.baselines.cross_encoder import CrossEncoder
    from spscanner_rag.baselines.dense import Dense
    from spscanner_rag.baselines.hybrid import Hybrid
    from spscanner_rag.baselines.late_chunking import LateChunking
    from spscanner_rag.baselines.late_interaction import LateInteraction
    from spscanner_rag.baselines.mamba_reranker import MambaReranker
    from spscanner_rag.baselines.propositions import Propositions
    from spscanner_rag.baselines.remote_scanner import RemoteScanner
    from spscanner_rag.baselines.trimwise import Trimwise

_MODULES = {
    "BM25": "bm25",
    "Baseline": "baseline",
    "Cascade": "cascade",
    "CrossEncoder": "cross_encoder",
    "Dense": "dense",
    "Hybrid": "hybrid",
    "LateChunking": "late_chunking",
    "LateInteraction": "late_interaction",
    "MambaReranker": "mamba_reranker",
    "Propositions": "propositions",
    "RemoteScanner": "remote_scanner",
    "Trimwise": "trimwise",
}
__all__ = [
    "BM25",
    "Baseline",
    "Cascade",
    "CrossEncoder",
    "Dense",
    "Hybrid",
    "LateChunking",
    "LateInteraction",
    "MambaReranker",
    "Propositions",
    "RemoteScanner",
    "Trimwise",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with torch_needed_for(f"the retriever {name}"):
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
