"""The log of a run: one JSON object a line, for every step and every validation."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


class TrainingLog:
    """Records of a run, each with its ``step``.

    Parameters
    ----------
    path : Path
        Made at the first record.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, record: Mapping[str, object]) -> None:
        """Add a record."""
        with self.path.open("a", encoding="utf-8") as log:
            log.write(json.dumps(record) + "\n")

    def keep_until(self, step: int) -> None:
        """Drop what comes after a step, since it will be done again, and a last line that a kill cut short."""
        if not self.path.exists():
            return
        kept = [record for record in self._records() if record["step"] <= step]
        unfinished = self.path.with_name(self.path.name + ".part")
        unfinished.write_text("".join(json.dumps(record) + "\n" for record in kept), encoding="utf-8")
        os.replace(unfinished, self.path)

    def has_validation(self, step: int) -> bool:
        """Whether the validation after a step is on record."""
        return any(record["step"] == step and "validation" in record for record in self._records())

    def _records(self) -> Iterator[dict[str, Any]]:
        if not self.path.exists():
            return
        for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict) and isinstance(record.get("step"), int):
                yield record
