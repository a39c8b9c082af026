"""Cache the propositions of passages, in memory and optionally in a file of JSON lines."""

import logging
from collections.abc import Iterator
from pathlib import Path

from spscanner_rag.baselines.decomposers import Source
from spscanner_rag.files.json_files import append_records, complete_lines, parse_json

_LOGGER = logging.getLogger(__name__)


class DecompositionCache(dict[Source, tuple[str, ...]]):
    """Maps passages to the propositions that the named decomposer made of them.

    The file is read if it exists, and appended to. Lines of other decomposers are ignored, unreadable lines are
    skipped and logged, and an incomplete last line, left by a killed process, is left out.
    """

    def __init__(self, decomposer: str, file: str | Path | None = None) -> None:
        super().__init__()
        self.decomposer = decomposer
        self.file = None if file is None else Path(file).expanduser()
        if self.file is None:
            return
        if not self.file.parent.is_dir() or (self.file.exists() and not self.file.is_file()):
            raise ValueError(f"cache_file is {file}; expected a file in a folder that exists")
        self.update(self._read(self.file))

    def add(self, source: Source, propositions: tuple[str, ...], *, in_file: bool = True) -> None:
        """Add the propositions of a passage."""
        self[source] = propositions
        if self.file is not None and in_file:
            record = {"decomposer": self.decomposer, **source._asdict(), "propositions": propositions}
            append_records(self.file, [record])

    def _read(self, path: Path) -> Iterator[tuple[Source, tuple[str, ...]]]:
        broken: list[int] = []
        for number, line in complete_lines(path):
            try:
                record = parse_json(line)
                source = Source(record["title"], record["section"], record["content"])
                propositions = tuple(record["propositions"])
                own = record["decomposer"] == self.decomposer
                if not all(isinstance(entry, str) for entry in (*source, *propositions)):
                    raise TypeError("expected strings")
            except (ValueError, KeyError, TypeError, RecursionError):
                if line.strip():
                    broken.append(number)
                continue
            if own:
                yield source, propositions
        if broken:
            _LOGGER.warning(
                "%s: left out %d lines that are not decompositions, the first being line %d",
                path, len(broken), broken[0],
            )  # fmt: skip
