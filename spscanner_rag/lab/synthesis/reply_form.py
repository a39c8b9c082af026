"""The form of a reply, lines that begin with keywords, as the prompt states it and as the reply is read."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from spscanner_rag.lab.llm.prompts import without_thoughts

Kind = Literal["text", "yes or no", "indices", "links"]

_REFUSAL = re.compile(
    r"\A\W*(?:i(?:.?m| am) (?:really |very )?sorry|sorry|i apologi[sz]e|i (?:cannot|can.?t|won.?t|am unable|"
    r"am not able)|as an ai\b|unfortunately,? i\b)",
    re.IGNORECASE,
)
_LINE = re.compile(r"^[\s*_`>-]*([A-Z][A-Z ]*?)(?:\s+(\d+))?[*_`]*\s*:[*_`]*\s*(.*?)\s*$")
_KEYWORDS = {
    "text": "{name}: text on one line",
    "yes or no": "{name}: YES or NO",
    "indices": "{name}: numbers with commas between them, or NONE",
    "links": "{name} and a number: the connection on one line; a line for each, or one line {name}: NONE",
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


def stated(fields: Sequence[Field]) -> str:
    """Return the end of a prompt: the form of the reply."""
    lines = "\n".join(_KEYWORDS[field.kind].format(name=field.name.upper()) for field in fields)
    return f"Reply with these lines and nothing else:\n{lines}"


def read(reply: str, fields: Sequence[Field]) -> dict[str, Any]:
    """Return the values of a reply by their names: ``str``, ``bool``, a list of ``int`` or a list of `Link`.

    Raises `MalformedReplyError` for a refusal, another form, a missing value and an index out of range.
    """
    reply = without_thoughts(reply)
    if _REFUSAL.match(reply):
        raise MalformedReplyError("the model refused", "it was a refusal")
    lines = [match for match in map(_LINE.match, reply.splitlines()) if match]
    return {
        field.name: _value([(match[2], match[3]) for match in lines if match[1] == field.name.upper()], field)
        for field in fields
    }


def _value(lines: list[tuple[str | None, str]], field: Field) -> object:
    first = lines[0][1] if lines else ""
    word = first.strip(" .").upper()
    if field.kind == "links" and word != "NONE" and lines and all(connection for _, connection in lines):
        return [Link(_index(number, field), " ".join(connection.split())) for number, connection in lines]
    if len(lines) == 1:
        if field.kind == "text" and first:
            return " ".join(first.split())
        if field.kind == "yes or no" and word in ("YES", "NO"):
            return word == "YES"
        if field.kind in ("indices", "links") and word == "NONE":
            return []
        if field.kind == "indices":
            return sorted({_index(number, field) for number in re.split(r"[,\s]+", first.strip(" .[]"))})
    raise MalformedReplyError(
        "the reply lacks a part", f"expected {_KEYWORDS[field.kind].format(name=field.name.upper())}"
    )


def _index(number: str | None, field: Field) -> int:
    if number is None or not re.fullmatch(r"[0-9]{1,9}", number) or int(number) >= field.below:
        raise MalformedReplyError(
            "an index is out of range", f"expected numbers from 0 to {field.below - 1}, got {number!r:.20}"
        )
    return int(number)
