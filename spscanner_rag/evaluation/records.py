"""What an evaluation has found out so far, one question a line, so that a run that was killed can go on."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

_RUN = "run.json"


class RunMismatchError(ValueError):
    """A folder holds the results of a run with other arguments."""


@dataclass(frozen=True, slots=True)
class Record:
    """How one retriever did on one question.

    Attributes
    ----------
    retriever, unit
        The setting.
    source, split, doc_id, qid
        The question.
    characters
        Length of the document.
    metrics
        "recall@10" and the like, 0 to 1.
    tokens
        Tokens of the best k units, by k.
    positions
        Recall at k in each tenth of the document, by k; None where it has no evidence.
    seconds
        That the scores took; what several questions on one document share is divided among them.
    gigaflops, gigaflops_padded
        For the first question on the document, without and with padding. None where there is no formula.
    peak_megabytes
        Resident memory of the process, models and all, at its most while the document was scored. None where
        the system does not tell.
    answerable
        False for a question that the document does not answer; it has no metrics.
    highest
        The highest probability of a sentence, where calibration is measured; else None.
    bins
        There, of an answerable question: what `Bins.filled` gives; else None.
    """

    retriever: str
    unit: str
    source: str
    split: str
    doc_id: str
    qid: str
    characters: int
    metrics: dict[str, float]
    tokens: dict[str, int] = field(default_factory=dict)
    positions: dict[str, list[float | None]] = field(default_factory=dict)
    seconds: float = 0.0
    gigaflops: float | None = None
    gigaflops_padded: float | None = None
    peak_megabytes: float | None = None
    answerable: bool = True
    highest: float | None = None
    bins: list[list[float]] | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """What tells it from the other records of a run."""
        return self.retriever, self.unit, self.source, self.doc_id, self.qid

    @classmethod
    def read(cls, line: str) -> Self:
        """From a line of JSON."""
        return cls(**json.loads(line))

    def line(self) -> str:
        """As a line of JSON; what is None is left out."""
        return json.dumps({name: value for name, value in asdict(self).items() if value is not None}) + "\n"


class RecordFile:
    """The records of a run in a folder.

    Parameters
    ----------
    folder : Path
        Made if it is not there.
    arguments : dict
        Of the run, as JSON has them. A folder that holds a run is taken up only with the same ones.

    Raises
    ------
    RunMismatchError
        If the folder holds a run with other arguments; names them.
    """

    def __init__(self, folder: Path, arguments: dict[str, Any]) -> None:
        check_arguments(folder, arguments)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _RUN).write_text(json.dumps(arguments, indent=1) + "\n", encoding="utf-8")
        self.path = folder / "records.jsonl"
        self.records: dict[tuple[str, ...], Record] = {}
        whole = 0
        if self.path.exists():
            for line in self.path.read_bytes().splitlines(keepends=True):
                if not line.endswith(b"\n"):
                    break  # the run was killed while it wrote this line
                record = Record.read(line.decode("utf-8"))
                self.records[record.key] = record
                whole += len(line)
            with self.path.open("r+b") as file:
                file.truncate(whole)

    def add(self, records: Iterable[Record]) -> None:
        """Append records, in one write."""
        records = list(records)
        lines = "".join(record.line() for record in records)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(lines)
        self.records |= {record.key: record for record in records}


def check_arguments(folder: Path, arguments: dict[str, Any]) -> None:
    """Raise ``RunMismatchError`` if a folder holds the results of a run with other arguments; write nothing."""
    path = folder / _RUN
    if not path.exists():
        return
    before = json.loads(path.read_text(encoding="utf-8"))
    differing = sorted(
        name for name in before.keys() | arguments.keys() if before.get(name) != arguments.get(name)
    )
    if differing:
        shown = "; ".join(f"{name}: {before.get(name)!r}, now {arguments.get(name)!r}" for name in differing)
        raise RunMismatchError(
            f"{folder} holds the results of a run with other arguments ({shown}); give the same again, "
            "or another --out"
        )
