"""The form of a reply, as the prompt states it and as the reply is read: JSON, or lines with keywords."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from spscanner_rag.files.json_files import parse_json
from spscanner_rag.lab.llm.prompts import without_thoughts

Form = Literal["json", "keywords"]
Kind = Literal["text", "yes or no", "indices", "links"]
FORMS: tuple[Form, ...] = ("json", "keywords")

_REFUSAL = re.compile(
    r"\A\W*(?:i(?:.?m| am) (?:really |very )?sorry|sorry|i apologi[sz]e|i (?:cannot|can.?t|won.?t|am unable|"
    r"am not able)|as an ai\b|unfortunately,? i\b)",
    re.IGNORECASE,
)
_LACKING = "the reply lacks a part"
_FENCE = re.compile(r"\A```(?:json)?\s*(.*?)\s*```\Z", re.DOTALL)
_LINE = re.compile(r"^[\s*_`>-]*([A-Z][A-Z ]*?)(?:\s+(\d+))?[*_`]*\s*:[*_`]*\s*(.*?)\s*$")
_JSON = {
    "text": "a string",
    "yes or no": '"yes" or "no"',
    "indices": "a list of numbers, [] for none",
    "links": 'a list of objects {"index": number, "connection": string}, [] for none',
}
_KEYWORDS = {
    "text": "{name}: text on one line",
    "yes or no": "{name}: YES or NO",
    "indices": "{name}: numbers with commas between them, or NONE",
    "links": "{name} and a number: the connection on one line; a line for each, or one line {name}: NONE",
}
_SCHEMA: dict[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "yes or no": {"type": "string", "enum": ["yes", "no"]},
    "indices": {"type": "array", "items": {"type": "integer"}},
    "links": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"index": {"type": "integer"}, "connection": {"type": "string"}},
            "required": ["index", "connection"],
        },
    },
}


class Link(NamedTuple):
    """A unit of a listing and what connects it with the chunk."""

    unit: int
    connection: str


@dataclass(frozen=True, slots=True)
class Field:
    """A part of a reply: its name, what it holds, and below what number its indices must be."""

    name: str
    kind: Kind
    below: int = 0


class MalformedReplyError(ValueError):
    """A reply without the right form; ``reason`` is one of a few, by which such replies are counted."""

    def __init__(self, reason: str, details: str = "") -> None:
        super().__init__(details or reason)
        self.reason = reason


def stated(fields: Sequence[Field], form: Form) -> str:
    """Return the end of a prompt: the form of the reply."""
    if form == "json":
        keys = "; ".join(f'"{field.name}": {_JSON[field.kind]}' for field in fields)
        return f"Reply with one JSON object with these keys and nothing else: {keys}."
    lines = "\n".join(_KEYWORDS[field.kind].format(name=field.name.upper()) for field in fields)
    return f"Reply with these lines and nothing else:\n{lines}"


def schema(fields: Sequence[Field], title: str) -> dict[str, Any]:
    """Return the JSON schema of a reply."""
    return {
        "title": title,
        "description": "The reply.",
        "type": "object",
        "properties": {field.name: _SCHEMA[field.kind] for field in fields},
        "required": [field.name for field in fields],
        "additionalProperties": False,
    }


def read(reply: str, fields: Sequence[Field], form: Form) -> dict[str, Any]:
    """Return the values of a reply by their names: ``str``, ``bool``, a list of ``int`` or a list of `Link`.

    Raises `MalformedReplyError` for a refusal, another form, a missing value and an index out of range.
    """
    reply = without_thoughts(reply)
    if _REFUSAL.match(reply):
        raise MalformedReplyError("the model refused", "it was a refusal")
    raw = _json_values(reply, fields) if form == "json" else _keyword_values(reply, fields)
    return {field.name: _checked(raw[field.name], field) for field in fields}


def _json_values(reply: str, fields: Sequence[Field]) -> dict[str, Any]:
    fenced = _FENCE.match(reply)
    try:
        record = parse_json(fenced[1] if fenced else reply)
    except (ValueError, RecursionError):
        raise MalformedReplyError("the reply is not JSON") from None
    names = {field.name for field in fields}
    if not isinstance(record, dict) or set(record) != names:
        got = ", ".join(map(str, record))[:100] if isinstance(record, dict) else type(record).__name__
        raise MalformedReplyError(_LACKING, f"expected the keys {', '.join(names)}, got {got}")
    return record


def _keyword_values(reply: str, fields: Sequence[Field]) -> dict[str, Any]:
    lines = [match for match in map(_LINE.match, reply.splitlines()) if match]
    values: dict[str, Any] = {}
    for field in fields:
        own = [(match[2], match[3]) for match in lines if match[1] == field.name.upper()]
        if not own or (len(own) > 1 and field.kind != "links"):
            raise MalformedReplyError(_LACKING, f"expected one line {field.name.upper()}: got {len(own)}")
        values[field.name] = _keyword_value(own, field)
    return values


def _keyword_value(lines: list[tuple[str | None, str]], field: Field) -> object:
    first = lines[0][1]
    if field.kind == "text":
        return first
    word = first.strip(" .").upper()
    if field.kind == "yes or no":
        return word
    if len(lines) == 1 and word == "NONE":
        return []
    if field.kind == "links":
        return [{"index": int(number) if number else number, "connection": how} for number, how in lines]
    try:
        return [int(number) for number in re.split(r"[,\s]+", first.strip(" .[]"))]
    except ValueError:
        raise MalformedReplyError("an index is no number", f"expected numbers, got {first[:60]}") from None


def _checked(value: object, field: Field) -> object:
    if field.kind == "text":
        if not isinstance(value, str) or not value.strip():
            raise MalformedReplyError("a part of the reply is empty", f"expected text under {field.name}")
        return " ".join(value.split())
    if field.kind == "yes or no":
        if not isinstance(value, str) or value.strip().lower() not in ("yes", "no"):
            raise MalformedReplyError("neither yes nor no", f"expected yes or no under {field.name}")
        return value.strip().lower() == "yes"
    if not isinstance(value, list):
        raise MalformedReplyError(_LACKING, f"expected a list under {field.name}")
    if field.kind == "indices":
        return sorted({_index(number, field) for number in value})
    links = []
    for entry in value:
        how = entry.get("connection") if isinstance(entry, dict) else None
        if not isinstance(how, str) or not how.strip():
            raise MalformedReplyError(_LACKING, "expected a connection for each link")
        links.append(Link(_index(entry.get("index"), field), " ".join(how.split())))
    return links


def _index(number: object, field: Field) -> int:
    if type(number) is not int or not 0 <= number < field.below:
        raise MalformedReplyError(
            "an index is out of range", f"expected numbers from 0 to {field.below - 1}, got {number!r:.20}"
        )
    return number
