"""The folder of a run: ``records.jsonl``, a line for each question of a setting, and ``run.json``, its inputs.

An interrupted run resumes from its records, and no others may join them.
"""

import builtins
import json
import math
import types
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self, get_args, get_origin

from spscanner_rag.checkpoint.whole_file import write_whole
from spscanner_rag.files.json_files import append_records, complete_lines, difference, parse_json

_RUN, RECORDS = "run.json", "records.jsonl"
_FORMAT = 2  # format 1 had no number, and no digests of texts and models
_RETRIEVERS = "retrievers"
_INSTEAD = "give another --out, or delete the folder to measure all again"


class RunMismatchError(ValueError):
    """A folder holds the results of a run with other arguments, or of an unknown run."""


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
    gigaflops: float | None = None  # for the first question on the document
    peak_megabytes: float | None = None  # resident memory of the process while the document was scored
    answerable: bool = True
    highest: float | None = None  # of an answer, or of the best sentence, if calibration is measured
    bins: list[list[float]] | None = None  # `Bins.filled`, if so and the question is answerable
    documents_read: int | None = None  # scored for a question that is asked of a corpus
    tokens_read: int | None = None  # of these documents
    index_megabytes: float | None = None  # of what the retriever keeps of the corpus between questions

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
        """Read a line of JSON; ``ValueError`` for anything but what `as_dict` gives."""
        content = parse_json(line)
        if not isinstance(content, dict):
            raise ValueError(f"a JSON {type(content).__name__}")
        if unknown := sorted(content.keys() - {own.name for own in fields(cls)}):
            raise ValueError(f"the unknown key {unknown[0]!r:.60}")
        for own in fields(cls):
            is_needed = own.default is MISSING and own.default_factory is MISSING
            if own.name not in content:
                if is_needed:
                    raise ValueError(f"no {own.name!r}")
                continue
            value = content[own.name]
            if not _fits(value, own.type):
                raise ValueError(f"{value!r:.60} under {own.name!r}")
        return cls(**content)

    def as_dict(self) -> dict[str, Any]:
        """The content of a line of JSON, without fields that are None."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class RecordFile:
    """The records of a run in a folder, which is created if it does not exist.

    A run resumes only with the same arguments (`check_arguments`). ``ValueError`` names a damaged record's line.
    """

    def __init__(self, folder: Path, arguments: Mapping[str, Any]) -> None:
        known = check_arguments(folder, arguments)
        self.path = folder / RECORDS
        records = [_read(line, f"{self.path}, line {number}") for number, line in complete_lines(self.path)]
        if "retrievers" in arguments:
            _check_known(records, known, self.path)
        self.records = {record.key: record for record in records}
        folder.mkdir(parents=True, exist_ok=True)
        write_arguments(folder, arguments, known)

    def add(self, records: Iterable[Record]) -> None:
        """Append records, in one write."""
        records = list(records)
        append_records(self.path, [record.as_dict() for record in records])
        self.records |= {record.key: record for record in records}


def check_arguments(folder: Path, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Raise ``RunMismatchError`` if a folder holds the results of a run with other arguments; write nothing.

    So it does if there are records, and ``run.json`` is missing, damaged or of an older version. The arguments are
    compared as JSON. ``retrievers`` maps names to what `identity_of` returned: a run may have others than the one
    before it, but those of both must be the same. Returns the identities of those that may have records.
    """
    before = _before(folder)
    if before is None:
        return {}
    known, asked = before.get(_RETRIEVERS, {}), arguments.get(_RETRIEVERS, {})
    added = {(_RETRIEVERS, name) for name in (*known, *asked) if name not in known or name not in asked}
    if changed := difference(before, arguments, added):
        raise RunMismatchError(
            f"{folder} holds the results of a run with other arguments, questions, texts or models "
            f"({changed}); give the same again, or another --out"
        )
    return dict(known)


def write_arguments(folder: Path, arguments: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Write ``run.json``; ``known`` are the retrievers from `check_arguments`, which may have records, too."""
    content = {"format": _FORMAT, **arguments}
    if known or _RETRIEVERS in arguments:
        content[_RETRIEVERS] = {**known, **arguments.get(_RETRIEVERS, {})}
    write_whole(folder / _RUN, json.dumps(content, indent=1) + "\n")


def _before(folder: Path) -> dict[str, Any] | None:
    """The content of ``run.json`` without its format; None where no record depends on it."""
    path, records = folder / _RUN, folder / RECORDS
    has_records = records.exists() and records.stat().st_size > 0
    if not path.exists():
        if has_records:
            raise RunMismatchError(
                f"{records}: got records without {_RUN}, which says what they were measured on; expected both: "
                f"{_INSTEAD}"
            )
        return None
    try:
        content = parse_json(path.read_bytes())
        if not isinstance(content, dict):
            raise ValueError(f"got a JSON {type(content).__name__}")
    except (ValueError, RecursionError) as error:
        if not has_records:  # nothing is lost: it is written again
            return None
        raise RunMismatchError(
            f"{path}: expected the JSON object that says what the records were measured on, got a damaged file "
            f"({error}); {_INSTEAD}"
        ) from None
    if content.pop("format", None) != _FORMAT or not isinstance(content.get(_RETRIEVERS, {}), dict):
        if not has_records:
            return None
        raise RunMismatchError(
            f"{path}: got results of another version of spscanner-rag, without digests of the texts and models "
            f"that they were measured on; expected digests: {_INSTEAD}"
        )
    return content


def _read(line: bytes, where: str) -> Record:
    try:
        return Record.read(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{where}: expected the record of a question, got {error}; delete this line, and its question "
            "is asked again, or give another --out"
        ) from None


def _check_known(records: Iterable[Record], known: Mapping[str, Any], path: Path) -> None:
    for name in dict.fromkeys(record.retriever for record in records):
        if name.partition(", ")[0] not in known:  # without its variants
            raise RunMismatchError(
                f"{path}: got records of {name!r:.80}, whose model run.json does not identify; give another "
                "--out, or delete the folder to measure all again"
            )


def _fits(value: object, kind: object) -> bool:
    """True if a JSON value is of the kind that a field declares; numbers are finite, counts not below 0."""
    kinds = get_args(kind)
    match get_origin(kind):
        case types.UnionType:
            return any(_fits(value, one) for one in kinds)
        case builtins.list:
            return isinstance(value, list) and all(_fits(one, kinds[0]) for one in value)
        case builtins.dict:
            return isinstance(value, dict) and all(_fits(one, kinds[1]) for one in value.values())
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return type(value) is kind and (type(value) is not int or value >= 0)
