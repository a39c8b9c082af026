"""The folder of a run: ``records.jsonl``, with a line per question and setting, and ``run.json``, its inputs.

An interrupted run resumes from its records; records of another run may not be added to
them.
"""

import builtins
import json
import math
import types
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self, get_args, get_origin

from spscanner_rag.files.writing import (
    append_records,
    complete_lines,
    earlier_run,
    parse_object,
    refuse_other_run,
)
from spscanner_rag.system.whole_file import write_whole

_RUN, RECORDS = "run.json", "records.jsonl"
_FORMAT = 3


@dataclass(frozen=True, slots=True)
class Record:
    """The result of one setting on one question; a field that is not measured is None."""

    retriever: str  # with the unit, the setting's `Setting.key`
    unit: str
    source: str
    split: str
    doc_id: str
    qid: str
    characters: int  # length of the document
    metrics: dict[
        str, float
    ]  # by name, such as "recall@10" and "seconds"; see `rows_of`
    answerable: bool = True
    highest: float | None = (
        None  # probability of an answer or of the best sentence, with calibration
    )
    bins: list[list[float]] | None = (
        None  # `filled` bins, with calibration and an answerable question
    )
    ranking: dict[str, float] | None = (
        None  # scores of judged documents by their ids, best first
    )

    @property
    def setting_key(self) -> tuple[str, str]:
        """The `Setting.key` of its setting."""
        return self.retriever, self.unit

    @property
    def key(self) -> tuple[str, ...]:
        """What identifies the record in its run."""
        return *self.setting_key, self.source, self.doc_id, self.qid

    @classmethod
    def read(cls, line: str | bytes) -> Self:
        """Read a line of JSON; ``ValueError`` for content that `as_dict` does not give."""
        content = parse_object(line)
        try:
            record = cls(**content)
        except TypeError as error:  # a key too many or too few
            raise ValueError(str(error)) from None
        for own in fields(cls):
            value = getattr(record, own.name)
            if not _fits(value, own.type):
                raise ValueError(f"{value!r:.60} under {own.name!r}")
        return record

    def as_dict(self) -> dict[str, Any]:
        """The content of a line of JSON, without fields that are None."""
        return {
            name: value for name, value in asdict(self).items() if value is not None
        }


class RecordFile:
    """The records of a run in a folder, which is created if it does not exist, and its inputs, ``run.json``.

    A run resumes only with the same arguments (`check_arguments`). ``ValueError`` names
    a damaged record's line.
    """

    def __init__(self, folder: Path, arguments: Mapping[str, Any]) -> None:
        known = check_arguments(folder, arguments)
        self.path = folder / RECORDS
        records = []
        for number, line in complete_lines(self.path):
            try:
                records.append(Record.read(line))
            except ValueError as error:
                raise ValueError(
                    f"{self.path}, line {number}: expected the record of a question,"
                    f" got {error}; delete this line to ask its question again, or give"
                    " another --out"
                ) from None
        content = {"format": _FORMAT, **arguments}
        if "retrievers" in arguments:
            content["retrievers"] = {**known, **arguments["retrievers"]}
        self.records = {record.key: record for record in records}
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / _RUN, json.dumps(content, indent=1) + "\n")

    def add(self, records: Iterable[Record]) -> None:
        """Append records, in one write."""
        records = list(records)
        append_records(self.path, [record.as_dict() for record in records])
        self.records |= {record.key: record for record in records}


def check_arguments(folder: Path, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Raise `OtherRunError` if a folder holds the records of a run with other arguments; write nothing.

    The arguments are compared as JSON. ``retrievers`` maps names to what `identity_of`
    returned: a run may have other retrievers than the earlier run, but a scanner in
    both must be the same. Returns the earlier retrievers.
    """
    records = folder / RECORDS
    if not records.exists() or not records.stat().st_size:
        return {}
    before = earlier_run(folder / _RUN, "records")
    known, asked = before.get("retrievers", {}), arguments.get("retrievers", {})
    if not isinstance(known, dict):
        known = {}  # the comparison below then finds a difference
    added = {
        ("retrievers", name)
        for name in (*known, *asked)
        if not (known.get(name) and asked.get(name))
    }
    refuse_other_run(folder, before, {"format": _FORMAT, **arguments}, added)
    return known


def _fits(value: object, kind: object) -> bool:
    """True if a JSON value has the type that a field declares.

    Numbers must be finite, counts not negative.
    """
    kinds = get_args(kind)
    match get_origin(kind):
        case types.UnionType:
            return any(_fits(value, one) for one in kinds)
        case builtins.list:
            return isinstance(value, list) and all(
                _fits(one, kinds[0]) for one in value
            )
        case builtins.dict:
            return isinstance(value, dict) and all(
                _fits(one, kinds[1]) for one in value.values()
            )
    if kind is float:
        return (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and math.isfinite(value)
        )
    return type(value) is kind and (type(value) is not int or value >= 0)
