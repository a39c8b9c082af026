"""The log of a run: one JSON object a line for every step and validation."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from spscanner_rag.checkpoint.whole_file import write_whole
from spscanner_rag.files.json_files import append_records, complete_lines

LOG_FILE = "log.jsonl"


class TrainingLog:
    """A JSON Lines file: one object for each step and each validation, with its ``step``."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, record: Mapping[str, object]) -> None:
        """Add a record."""
        append_records(self.path, [record])

    def keep_until(self, step: int) -> None:
        """Drop the records after a step: the run will repeat those steps."""
        if self.path.exists():
            kept = [json.dumps(record) + "\n" for record in self._records() if record["step"] <= step]
            write_whole(self.path, "".join(kept))

    def has_validation(self, step: int) -> bool:
        """Whether the validation after a step is on record."""
        return any(record["step"] == step and "validation" in record for record in self._records())

    def _records(self) -> Iterator[dict[str, Any]]:
        for _, line in complete_lines(self.path):
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict) and isinstance(record.get("step"), int):
                yield record
