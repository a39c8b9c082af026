"""Writes what comes of each item of a run to files, and counts it."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

from spscanner_lab.llm.asking import Asker
from spscanner_lab.llm.budget import Budget, RunEndedError
from spscanner_rag.system.whole_files import fsync_file, telling_of_full_disks

MOST_FAILURES = 20
"""A run ends after this many items in a row without a reply.

The provider must be unavailable then.
"""

FILES = {"train": "train.jsonl", "test": "test.jsonl"}

Item = TypeVar("Item")

Show = Callable[[int, int, Budget], object]
"""Takes the numbers of items and of examples so far."""


class Outcome(NamedTuple):
    """What came of an item.

    Attributes
    ----------
    line : mapping or None
        A line of a question file.
    dropped : mapping
        How many questions were dropped, by reason.
    malformed : mapping
        What was wrong with replies.
    """

    line: Mapping[str, Any] | None
    dropped: Mapping[str, int]
    malformed: Mapping[str, int]

    @property
    def failure(self) -> str:
        """Why there was no reply, if that is why there is no line."""
        if self.line is not None:
            return ""
        return next((why for why in self.dropped if why.startswith("no reply")), "")


@dataclass(slots=True)
class OutcomeCounts:
    """Counts of a run so far: items, examples, and why others were dropped."""

    items: int = 0
    questions: int = 0  # in the lines of all files
    lines_by_split: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    malformed: Counter[str] = field(default_factory=Counter)
    stopped: str = ""  # why the run ended early
    failures: int = 0  # items in a row without a reply

    @property
    def examples(self) -> int:
        """The number of lines in all files."""
        return self.lines_by_split.total()

    def add(self, outcome: Outcome) -> None:
        """Count what came of an item."""
        self.items += 1
        self.dropped.update(outcome.dropped)
        self.malformed.update(outcome.malformed)
        if outcome.line is not None:
            self.lines_by_split[outcome.line["split"]] += 1
            self.questions += len(outcome.line["questions"])
        self.failures = self.failures + 1 if outcome.failure else 0

    def as_json(self) -> dict[str, Any]:
        """Return the counts as they are in a summary."""
        files = {name: self.lines_by_split[split] for split, name in FILES.items()}
        return {
            "examples": self.examples,
            "files": files,
            "dropped": dict(self.dropped.most_common()),
            "malformed_replies": dict(self.malformed.most_common()),
            "stopped": self.stopped,
        }


def write_outcomes(
    out_folder: Path,
    asker: Asker,
    items: Iterable[Item],
    work: Callable[[Item], Outcome],
    show: Show,
    kind_of_items: str,
) -> OutcomeCounts:
    """Work on items in several threads, and write their lines in order.

    The files replace those of an earlier run at the end. A run ends early, and the
    counts say why, if nothing more may be asked, or after `MOST_FAILURES`;
    ``kind_of_items`` is for that message.
    """
    counts = OutcomeCounts()
    unfinished_files = {
        split: out_folder / f"{name}.part" for split, name in FILES.items()
    }
    with ExitStack() as stack:
        files: dict[str, IO[str]] = {}
        for split, unfinished in unfinished_files.items():
            files[split] = stack.enter_context(unfinished.open("w", encoding="ascii"))
        outcomes = stack.enter_context(closing(asker.in_order(items, work)))
        try:
            for outcome in outcomes:
                if outcome.line is not None:
                    split = outcome.line["split"]
                    with telling_of_full_disks(unfinished_files[split]):
                        print(json.dumps(outcome.line), file=files[split], flush=True)
                counts.add(outcome)
                if counts.failures >= MOST_FAILURES:
                    raise RunEndedError(
                        f"{counts.failures} {kind_of_items} in a row got"
                        f" {outcome.failure}"
                    )
                show(counts.items, counts.examples, asker.budget)
        except RunEndedError as error:
            counts.stopped = asker.budget.stopped or str(error)
    for split, name in FILES.items():
        if counts.lines_by_split[split]:
            fsync_file(unfinished_files[split])
            unfinished_files[split].replace(out_folder / name)
        else:
            unfinished_files[split].unlink()
            (out_folder / name).unlink(missing_ok=True)
    return counts
