"""Read a question and a whole document once and score every sentence."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from spscanner_rag.system.version import __version__

if TYPE_CHECKING:
    from spscanner_rag.results import Passage, ScanResult, ScoredSentence
    from spscanner_rag.scan.prepared_document import PreparedDocument
    from spscanner_rag.scanner import Scanner

__all__ = [
    "Passage",
    "PreparedDocument",
    "ScanResult",
    "Scanner",
    "ScoredSentence",
    "__version__",
    "verify",
]

_MODULES = {
    "Passage": "spscanner_rag.results",
    "PreparedDocument": "spscanner_rag.scan.prepared_document",
    # its types are in spscanner_rag.baselines
    "RemoteScanner": "spscanner_rag.baselines.remote_scanner",
    "ScanResult": "spscanner_rag.results",
    "Scanner": "spscanner_rag.scanner",
    "ScoredSentence": "spscanner_rag.results",
    # its types are there: `apps` stands above this module
    "verify": "spscanner_rag.apps.verifying",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - what a module defines
    # Modules are imported when a name is first used: they need torch, which is slow to
    # import.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
