"""Replies of lines that begin with a keyword: their form, and what is read."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from spscanner_lab.llm.replies import without_thoughts

Kind = Literal["text", "yes or no", "indices", "links"]

_REFUSAL = re.compile(
    r"\A\W*(?:i(?:.?m| am) (?:really |very )?sorry|sorry|i apologi[sz]e"
    r"|i (?:cannot|can.?t|won.?t|am unable|am not able)"
    r"|as an ai\b|unfortunately,? i\b)",
    re.IGNORECASE,
)
_LINE = re.compile(
    r"^[\s*_`>-]*([A-Z][A-Z ]*?)(?:\s+(\d+))?[*_`]*\s*:[*_`]*\s*(.*?)\s*$"
)
_KEYWORDS = {
    "text": "{name}: text on one line",
    "yes or no": "{name}: YES or NO",
    "indices": "{name}: numbers with commas between them, or NONE",
    "links": (
        "{name} and a number: the connection on one line; a line for each, or one line"
        " {name}: NONE"
    ),
}


class Link(NamedTuple):
    """A unit of a listing, and what connects it with the chunk."""

    unit: int
    connection: str


class _Line(NamedTuple):
    """What follows a keyword: a number, if there is one, and the text."""

    number: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Field:
    """A part of a reply: its name, its kind, and what its indices must be below."""

    name: str
    kind: Kind
    below: int = 0

    @property
    def keyword(self) -> str:
        """The word that its lines begin with."""
        return self.name.upper()

    @property
    def form(self) -> str:
        """The form of its lines, as a prompt states it."""
        return _KEYWORDS[self.kind].format(name=self.keyword)


class MalformedReplyError(ValueError):
    """A reply in the wrong form.

    ``reason`` is one of a few reasons, by which such replies are counted.
    """

    def __init__(self, reason: str, details: str = "") -> None:
        super().__init__(details or reason)
        self.reason = reason


def form_of_reply(fields: Sequence[Field]) -> str:
    """Return the end of a prompt, which states the form of the reply.

    Examples
    --------
    >>> from spscanner_lab.synthesis.reply_form import Field, form_of_reply
    >>> print(form_of_reply([Field("relevant", "yes or no")]))
    Reply with these lines and nothing else:
    RELEVANT: YES or NO
    """
    lines = "\n".join(field.form for field in fields)
    return f"Reply with these lines and nothing else:\n{lines}"


def read_reply(reply: str, fields: Sequence[Field]) -> dict[str, Any]:
    r"""Return the values of a reply by name.

    Each is a ``str``, a ``bool``, a list of ``int`` or a list of `Link`. Raises
    `MalformedReplyError` for a refusal, a wrong form, a missing value or an index out
    of range.

    Examples
    --------
    >>> from spscanner_lab.synthesis.reply_form import Field, read_reply
    >>> fields = [Field("relevant", "yes or no"), Field("indices", "indices", 5)]
    >>> read_reply("RELEVANT: YES\nINDICES: 4, 2", fields)
    {'relevant': True, 'indices': [2, 4]}
    """
    reply = without_thoughts(reply)
    if _REFUSAL.match(reply):
        raise MalformedReplyError("the model refused", "it was a refusal")
    lines_by_keyword: dict[str, list[_Line]] = {}
    for line in reply.splitlines():
        if match := _LINE.match(line):
            lines = lines_by_keyword.setdefault(match[1], [])
            lines.append(_Line(match[2], match[3]))
    values = {}
    for field in fields:
        values[field.name] = _value(lines_by_keyword.get(field.keyword, []), field)
    return values


def _value(lines: Sequence[_Line], field: Field) -> object:
    """Return the value of a field from the lines that begin with its keyword."""
    text = lines[0].text if lines else ""
    word = text.strip(" .").upper()
    is_alone = len(lines) == 1
    if field.kind in ("indices", "links") and is_alone and word == "NONE":
        return []
    if field.kind == "links" and word != "NONE" and _all_have_text(lines):
        return [Link(_index(line.number, field), _spaced(line.text)) for line in lines]
    if field.kind == "text" and is_alone and text:
        return _spaced(text)
    if field.kind == "yes or no" and is_alone and word in ("YES", "NO"):
        return word == "YES"
    if field.kind == "indices" and is_alone:
        numbers = re.split(r"[,\s]+", text.strip(" .[]"))
        return sorted({_index(number, field) for number in numbers})
    raise MalformedReplyError("the reply lacks a part", f"expected {field.form}")


def _all_have_text(lines: Sequence[_Line]) -> bool:
    return bool(lines) and all(line.text for line in lines)


def _spaced(text: str) -> str:
    """Return a text with single spaces between its words."""
    return " ".join(text.split())


def _index(number: str | None, field: Field) -> int:
    is_number = number is not None and re.fullmatch(r"[0-9]{1,9}", number)
    if number is None or not is_number or int(number) >= field.below:
        raise MalformedReplyError(
            "an index is out of range",
            f"expected numbers from 0 to {field.below - 1}, got {number!r:.20}",
        )
    return int(number)
