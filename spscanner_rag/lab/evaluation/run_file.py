"""``run.json``: what the records of a folder were measured on and with, so that no others join them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spscanner_rag.checkpoint.whole_file import write_whole
from spscanner_rag.files.json_files import difference, parse_json

_RUN, RECORDS = "run.json", "records.jsonl"
_FORMAT = 2  # 1, which was not written, had no digests of texts and models
_RETRIEVERS = "retrievers"
_INSTEAD = "give another --out, or delete the folder to measure all again"


class RunMismatchError(ValueError):
    """A folder holds the results of a run with other arguments, or of one that cannot be told."""


def check_arguments(folder: Path, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Raise ``RunMismatchError`` if a folder holds the results of a run with other arguments; write nothing.

    Parameters
    ----------
    folder : Path
        It need not exist.
    arguments : mapping
        What must be the same, compared as JSON. ``retrievers`` maps names to what `identity_of` returned: a run
        may have others than the one before it, but those of both must be the same.

    Returns
    -------
    dict
        The identities of the retrievers that the folder may have records of.

    Raises
    ------
    RunMismatchError
        Also if there are records, and ``run.json`` is missing, damaged or of an older version.
    """
    before = _before(folder)
    if before is None:
        return {}
    known, asked = before.get(_RETRIEVERS, {}), arguments.get(_RETRIEVERS, {})
    added = {(_RETRIEVERS, name) for name in (*known, *asked) if name not in known or name not in asked}
    told = difference(before, arguments, added)
    if told:
        raise RunMismatchError(
            f"{folder} holds the results of a run with other arguments, questions, texts or models "
            f"({told}); give the same again, or another --out"
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
