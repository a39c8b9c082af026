"""The folder of a run: its settings, and the files made of what became of every sub-document."""

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from spscanner_rag.checkpoint.unfinished import whole_file
from spscanner_rag.checkpoint.whole_file import telling_of_full_disks, write_whole
from spscanner_rag.files.json_files import earlier_run, refuse_other_run

SETTINGS, REPLIES = "settings.json", "replies.jsonl"
TRAIN, TEST, SUMMARY = "train.jsonl", "test.jsonl", "summary.json"


class Outcomes:
    """The outcomes of sub-documents, in order; the examples wait in a file without a name.

    Nothing is kept for the next run in the folder, which makes the same of the same replies.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.done = self.examples = 0
        self.reasons: Counter[str] = Counter()
        self.malformed: Counter[str] = Counter()  # replies that were asked for again, by what was wrong
        self._lines = tempfile.TemporaryFile("w+", encoding="ascii", dir=folder)  # noqa: SIM115 - until `close`

    def add(self, line: Mapping[str, Any] | None, reason: str, malformed: Mapping[str, int]) -> None:
        """Take the outcome of the next sub-document: a line of a question file, or None and the reason."""
        self.done += 1
        self.malformed.update(malformed)
        if line is None:
            self.reasons[reason] += 1
            return
        self.examples += 1
        with telling_of_full_disks(self._folder):
            self._lines.write(json.dumps(line) + "\n")

    def write_files(self) -> dict[str, int]:
        """Write training and test file, and return their sizes; an empty one is removed."""
        counts = Counter(line["split"] for line in self._written())
        for name, split in ((TRAIN, "train"), (TEST, "test")):
            if not counts[split]:
                (self._folder / name).unlink(missing_ok=True)
                continue
            with (
                whole_file(self._folder / name) as unfinished,
                unfinished.open("w", encoding="ascii") as file,
            ):
                file.writelines(json.dumps(line) + "\n" for line in self._written() if line["split"] == split)
        return {TRAIN: counts["train"], TEST: counts["test"]}

    def close(self) -> None:
        """Forget the examples."""
        self._lines.close()

    def _written(self) -> Iterator[dict[str, Any]]:
        with telling_of_full_disks(self._folder):
            self._lines.seek(0)
        return map(json.loads, self._lines)


def keep_settings(folder: Path, settings: Mapping[str, object]) -> None:
    """Write the settings of a new run; raise ``ValueError`` if the folder holds a run with others."""
    path = folder / SETTINGS
    if path.exists():
        refuse_other_run(folder, earlier_run(path, "replies"), settings)
    else:
        write_json(path, settings)


def write_json(path: Path, content: object) -> None:
    """Write a small JSON file, whole or not at all."""
    write_whole(path, json.dumps(content, indent=2) + "\n")
