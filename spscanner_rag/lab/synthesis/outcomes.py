"""The folder of a run: its settings, the outcome of every sub-document in order, and the files made of them."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from spscanner_rag.checkpoint.whole_file import whole_file, write_whole
from spscanner_rag.files.json_files import append_records, complete_lines, difference, parse_json
from spscanner_rag.lab.evidence.questions import DataError

SETTINGS, REPLIES, OUTCOMES = "settings.json", "replies.jsonl", "outcomes.jsonl"
TRAIN, TEST, SUMMARY = "train.jsonl", "test.jsonl", "summary.json"


class OutcomeFile:
    """The outcomes of sub-documents 0, 1, 2, ... in this order, one a line; the next run goes on after the last.

    Each line is ``{"number", "doc_id", "reason", "malformed", "line"}``: the line of a question file, or null
    with the reason; ``malformed`` counts replies that were asked for again.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / OUTCOMES
        self.done = 0
        self.reasons: Counter[str] = Counter()
        self.malformed: Counter[str] = Counter()
        self.examples = 0
        for record in self.records():
            self._count(record)

    def add(
        self,
        number: int,
        doc_id: str,
        line: Mapping[str, Any] | None,
        reason: str = "",
        malformed: Mapping[str, int] | None = None,
    ) -> None:
        """Append the outcome of the next sub-document."""
        assert number == self.done, "outcomes come in the order of the sub-documents"
        counts = dict(malformed or {})
        record = {"number": number, "doc_id": doc_id, "reason": reason, "malformed": counts, "line": line}
        append_records(self.path, [record])
        self._count(record)

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the outcomes so far, one at a time."""
        for number, line in complete_lines(self.path):
            try:
                record = parse_json(line)
                if record["number"] != number - 1 or not isinstance(record["line"], dict | None):
                    raise ValueError("it is not the next outcome")
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise DataError(
                    f"{self.path}, line {number}: expected the outcome of sub-document {number - 1}, got "
                    f"{line[:60]!r} ({error}); remove this line and all after it: replies are kept elsewhere"
                ) from None
            yield record

    def write_files(self, folder: Path) -> dict[str, int]:
        """Write training and test file from all outcomes, and return their sizes; an empty one is removed."""
        splits = Counter(line["split"] for line in self.lines())
        for name, split in ((TRAIN, "train"), (TEST, "test")):
            if not splits[split]:
                (folder / name).unlink(missing_ok=True)
                continue
            with whole_file(folder / name) as unfinished, unfinished.open("w", encoding="ascii") as file:
                file.writelines(json.dumps(line) + "\n" for line in self.lines() if line["split"] == split)
        return {TRAIN: splits["train"], TEST: splits["test"]}

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield the lines of question files, of both splits."""
        return (record["line"] for record in self.records() if record["line"] is not None)

    def _count(self, record: Mapping[str, Any]) -> None:
        self.done += 1
        self.malformed.update(record["malformed"])
        if record["line"] is None:
            self.reasons[record["reason"]] += 1
        else:
            self.examples += 1


def keep_settings(folder: Path, settings: Mapping[str, object]) -> None:
    """Write the settings of a new run; raise ``ValueError`` if the folder holds a run with others."""
    path = folder / SETTINGS
    if not path.exists():
        write_json(path, settings)
        return
    before = parse_json(path.read_text(encoding="utf-8"))
    if differing := difference(before, settings):
        raise ValueError(
            f"{folder}: holds a run with other settings: {differing}; expected the same: give them again, or "
            "another --out"
        )


def write_json(path: Path, content: object) -> None:
    """Write a small JSON file, whole or not at all."""
    write_whole(path, json.dumps(content, indent=2) + "\n")
