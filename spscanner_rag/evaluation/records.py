"""The records of a run: a line for each setting and question, so that an interrupted run can resume."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from spscanner_rag.files.json_lines import append_records, complete_lines
from spscanner_rag.files.whole_file import write_whole

_RUN = "run.json"


class RunMismatchError(ValueError):
    """A folder holds the results of a run with other arguments."""


@dataclass(frozen=True, slots=True)
class Record:
    """The result of one setting on one question; None for what is not measured or not known."""

    retriever: str  # with the unit, the setting's `Setting.key`
    unit: str
    source: str
    split: str
    doc_id: str
    qid: str
    characters: int  # length of the document
    metrics: dict[str, float]  # "recall@10" and the like, 0 to 1; empty for an unanswerable question
    tokens: dict[str, int] = field(default_factory=dict)  # of the best k units, by k
    positions: dict[str, list[float | None]] = field(default_factory=dict)  # recall in each tenth, by k
    seconds: float = 0.0  # for scoring; questions on one document share them equally
    gigaflops: float | None = None  # for the first question on the document, without padding
    gigaflops_padded: float | None = None  # the same with the padding of batches
    peak_megabytes: float | None = None  # resident memory of the process while the document was scored
    answerable: bool = True
    highest: float | None = None  # the highest probability of a sentence, if calibration is measured
    bins: list[list[float]] | None = None  # `Bins.filled`, if so and the question is answerable
    documents_read: int | None = None  # scored for a question that is asked of a corpus
    tokens_read: int | None = None  # of these documents

    @property
    def setting_key(self) -> tuple[str, str]:
        """The `Setting.key` of its setting."""
        return self.retriever, self.unit

    @property
    def key(self) -> tuple[str, ...]:
        """What identifies it among the records of a run."""
        return *self.setting_key, self.source, self.doc_id, self.qid

    @classmethod
    def read(cls, line: str | bytes) -> Self:
        """Read a line of JSON."""
        return cls(**json.loads(line))

    def as_dict(self) -> dict[str, Any]:
        """The content of a line of JSON, without fields that are None."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class RecordFile:
    """The records of a run in a folder, which is created if it does not exist.

    A run resumes only with the same arguments, compared as JSON; see `check_arguments`.
    """

    def __init__(self, folder: Path, arguments: dict[str, Any]) -> None:
        check_arguments(folder, arguments)
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / _RUN, json.dumps(arguments, indent=1) + "\n")
        self.path = folder / "records.jsonl"
        records = (Record.read(line) for _, line in complete_lines(self.path))
        self.records = {record.key: record for record in records}

    def add(self, records: Iterable[Record]) -> None:
        """Append records, in one write."""
        records = list(records)
        append_records(self.path, [record.as_dict() for record in records])
        self.records |= {record.key: record for record in records}


def check_arguments(folder: Path, arguments: dict[str, Any]) -> None:
    """Raise ``RunMismatchError`` if a folder holds the results of a run with other arguments; write nothing."""
    path = folder / _RUN
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else arguments
    differing = sorted(
        name for name in before.keys() | arguments.keys() if before.get(name) != arguments.get(name)
    )
    if differing:
        shown = "; ".join(f"{name}: {before.get(name)!r}, now {arguments.get(name)!r}" for name in differing)
        raise RunMismatchError(
            f"{folder} holds the results of a run with other arguments ({shown}); give the same again, "
            "or another --out"
        )
