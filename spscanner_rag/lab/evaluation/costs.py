"""What scoring takes: the peak memory of the process, what a retriever keeps of a corpus, on which processor."""

import platform
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from spscanner_rag.lab.evaluation.corpora import CorpusUnits
from spscanner_rag.scorers import Scorer

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)


def index_megabytes(scorer: Scorer, units: CorpusUnits, collection: Sequence[int]) -> float:
    """Megabytes that a retriever keeps of a corpus between questions: vectors, keys, values, counts of words.

    The parts of a hybrid and the stages of a cascade add up; the counts of words, which all of them share, count
    once. A remote scanner's words are counted here and sent to its server.
    """
    parts = list(_parts(scorer))
    counts = any(getattr(part, "uses_collection", False) for part in parts if not hasattr(part, "scorers"))
    counts = counts and getattr(scorer, "uses_collection", False)
    words = sum(array.nbytes for array in units.index(collection).postings) if counts else 0
    return (words + sum(getattr(part, "index_bytes", 0) for part in parts)) / 1e6


def _parts(scorer: object) -> Iterator[object]:
    yield scorer
    for part in getattr(scorer, "scorers", ()):
        yield from _parts(part)


class PeakMemory:
    """Measures the peak memory of this process, on Linux; the kernel keeps one peak, which a new object resets."""

    def __init__(self) -> None:
        try:
            _RESET.write_text("5", encoding="ascii")
            self._known = True
        except OSError:  # not Linux, or not permitted
            self._known = False

    def megabytes(self) -> float | None:
        """Megabytes of resident memory at the peak, models included; None where the system does not report it."""
        found = _PEAK.search(_STATUS.read_text(encoding="ascii")) if self._known else None
        return None if found is None else int(found[1]) * 1024 / 1e6


def processor_name() -> str:
    """The name of the processor, for reports."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
