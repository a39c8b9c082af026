"""The folder of a run: its records and its inputs.

``records.jsonl`` has a line per question and setting, and ``run.json`` the inputs. An
interrupted run resumes from its records; records of another run may not be added to
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

from spscanner_rag.system.json_lines import append_records, complete_lines
from spscanner_rag.system.run_inputs import earlier_run, refuse_other_run
from spscanner_rag.system.strict_json import parse_object
from spscanner_rag.system.whole_files import write_whole

RECORDS = "records.jsonl"
_RUN = "run.json"
_FORMAT = 3


@dataclass(frozen=True, slots=True)
class Record:
    """The result of one setting on one question.

    A field that is not measured is None. ``retriever`` and ``unit`` are the setting's
    `Setting.key`, and ``characters`` the length of the document. ``metrics`` are by
    name, such as "recall@10" and "seconds" (`rows_of`).

    With calibration there are ``highest``, the probability of an answer or of the best
    sentence, and for an answerable question ``bins``, as `filled` gives them. For a
    query with judgements there is ``ranking``, the scores of documents by their ids,
    best first.
    """

    retriever: str
    unit: str
    source: str
    split: str
    doc_id: str
    qid: str
    characters: int
    metrics: dict[str, float]
    answerable: bool = True
    highest: float | None = None
    bins: list[list[float]] | None = None
    ranking: dict[str, float] | None = None

    @property
    def setting_key(self) -> tuple[str, str]:
        """The `Setting.key` of its setting."""
        return self.retriever, self.unit

    @property
    def key(self) -> tuple[str, ...]:
        """What identifies the record in its run."""
        return *self.setting_key, self.source, self.doc_id, self.qid

    @classmethod
    def from_line(cls, line: str | bytes) -> Self:
        """Read a line of JSON.

        ``ValueError`` for content that `as_dict` never gives.

        Examples
        --------
        >>> from spscanner_lab.evaluation.records import Record
        >>> record = Record("bm25", "chunk", "tales", "dev", "d1", "q1", 900, {})
        >>> import json
        >>> Record.from_line(json.dumps(record.as_dict())) == record
        True
        """
        content = parse_object(line)
        try:
            record = cls(**content)
        except TypeError as error:  # a key too many or too few
            raise ValueError(str(error)) from None
        for record_field in fields(cls):
            value = getattr(record, record_field.name)
            if not _fits(value, record_field.type):
                raise ValueError(f"{value!r:.60} under {record_field.name!r}")
        return record

    def as_dict(self) -> dict[str, Any]:
        """The content of a line of JSON, without fields that are None."""
        content = asdict(self)
        return {name: value for name, value in content.items() if value is not None}


class RecordFile:
    """The records of a run in a folder, and its inputs, ``run.json``.

    The folder is created if it does not exist. A run resumes only with the same
    arguments (`check_arguments`). ``ValueError`` names a damaged record's line.
    """

    def __init__(self, folder: Path, arguments: Mapping[str, Any]) -> None:
        earlier_retrievers = check_arguments(folder, arguments)
        self.path = folder / RECORDS
        self.records: dict[tuple[str, ...], Record] = {}
        for number, line in complete_lines(self.path):
            record = self._record(number, line)
            self.records[record.key] = record
        content = {"format": _FORMAT, **arguments}
        if "retrievers" in arguments:
            content["retrievers"] = {**earlier_retrievers, **arguments["retrievers"]}
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / _RUN, json.dumps(content, indent=1) + "\n")

    def _record(self, number: int, line: bytes) -> Record:
        try:
            return Record.from_line(line)
        except ValueError as error:
            raise ValueError(
                f"{self.path}, line {number}: expected the record of a question,"
                f" got {error}; delete this line to ask its question again, or give"
                " another --out"
            ) from None

    def add(self, records: Iterable[Record]) -> None:
        """Append records, in one write."""
        records = list(records)
        append_records(self.path, [record.as_dict() for record in records])
        for record in records:
            self.records[record.key] = record


def check_arguments(folder: Path, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Raise `OtherRunError` if a folder has records of a run with other arguments.

    Nothing is written. The arguments are compared as JSON. ``retrievers`` maps names to
    what `identity_of` returned: a run may have other retrievers than the earlier run,
    but a scanner in both must be the same. Returns the earlier retrievers.
    """
    records = folder / RECORDS
    if not records.exists() or not records.stat().st_size:
        return {}
    before = earlier_run(folder / _RUN, "records")
    earlier_retrievers = before.get("retrievers", {})
    if not isinstance(earlier_retrievers, dict):
        earlier_retrievers = {}  # the comparison below then finds a difference
    retrievers = arguments.get("retrievers", {})
    # these may differ between the two runs
    in_one_only = set()
    for name in (*earlier_retrievers, *retrievers):
        if not (earlier_retrievers.get(name) and retrievers.get(name)):
            in_one_only.add(("retrievers", name))
    refuse_other_run(folder, before, {"format": _FORMAT, **arguments}, in_one_only)
    return earlier_retrievers


def _fits(value: object, kind: object) -> bool:
    """True if a JSON value has the type that a field declares.

    Numbers must be finite, counts not negative.
    """
    kinds = get_args(kind)
    match get_origin(kind):
        case types.UnionType:
            return any(_fits(value, member) for member in kinds)
        case builtins.list:
            return isinstance(value, list) and _all_fit(value, kinds[0])
        case builtins.dict:
            return isinstance(value, dict) and _all_fit(value.values(), kinds[1])
    if kind is float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and math.isfinite(value)  # type: ignore[arg-type]
    return type(value) is kind and (type(value) is not int or value >= 0)


def _all_fit(values: Iterable[object], kind: object) -> bool:
    return all(_fits(value, kind) for value in values)
