"""Asks a language model, or a stand-in, for a reply in a given form: prompts, keywords, retries."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, NamedTuple

from spscanner_lab.llm.asking import NoReplyError
from spscanner_lab.llm.fencing import fenced_prompt
from spscanner_lab.llm.language_models import (
    LanguageModel,
    language_model_of,
    named_model,
)
from spscanner_lab.llm.replies import without_thoughts
from spscanner_rag.text.languages import STOP_WORDS

Kind = Literal["text", "yes or no", "indices", "links"]

_REFUSAL = re.compile(
    r"\A\W*(?:i(?:.?m| am) (?:really |very )?sorry|sorry|i apologi[sz]e|i"
    r" (?:cannot|can.?t|won.?t|am unable|"
    r"am not able)|as an ai\b|unfortunately,? i\b)",
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


@dataclass(frozen=True, slots=True)
class Field:
    """A part of a reply: its name, its kind, and the number that its indices must be below."""

    name: str
    kind: Kind
    below: int = 0


class MalformedReplyError(ValueError):
    """A reply in the wrong form.

    ``reason`` is one of a few reasons, by which such replies are counted.
    """

    def __init__(self, reason: str, details: str = "") -> None:
        super().__init__(details or reason)
        self.reason = reason


def stated(fields: Sequence[Field]) -> str:
    """Return the end of a prompt, which states the form of the reply."""
    lines = "\n".join(
        _KEYWORDS[field.kind].format(name=field.name.upper()) for field in fields
    )
    return f"Reply with these lines and nothing else:\n{lines}"


def read(reply: str, fields: Sequence[Field]) -> dict[str, Any]:
    """Return the values of a reply by name: each a ``str``, a ``bool``, a list of ``int`` or a list of `Link`.

    Raises `MalformedReplyError` for a refusal, a wrong form, a missing value or an
    index out of range.
    """
    reply = without_thoughts(reply)
    if _REFUSAL.match(reply):
        raise MalformedReplyError("the model refused", "it was a refusal")
    lines = [match for match in map(_LINE.match, reply.splitlines()) if match]
    return {
        field.name: _value(
            [(match[2], match[3]) for match in lines if match[1] == field.name.upper()],
            field,
        )
        for field in fields
    }


def _value(lines: list[tuple[str | None, str]], field: Field) -> object:
    first = lines[0][1] if lines else ""
    word = first.strip(" .").upper()
    if (
        field.kind == "links"
        and word != "NONE"
        and lines
        and all(connection for _, connection in lines)
    ):
        return [
            Link(_index(number, field), " ".join(connection.split()))
            for number, connection in lines
        ]
    if len(lines) == 1:
        if field.kind == "text" and first:
            return " ".join(first.split())
        if field.kind == "yes or no" and word in ("YES", "NO"):
            return word == "YES"
        if field.kind in ("indices", "links") and word == "NONE":
            return []
        if field.kind == "indices":
            return sorted(
                {
                    _index(number, field)
                    for number in re.split(r"[,\s]+", first.strip(" .[]"))
                }
            )
    raise MalformedReplyError(
        "the reply lacks a part",
        f"expected {_KEYWORDS[field.kind].format(name=field.name.upper())}",
    )


def _index(number: str | None, field: Field) -> int:
    if (
        number is None
        or not re.fullmatch(r"[0-9]{1,9}", number)
        or int(number) >= field.below
    ):
        raise MalformedReplyError(
            "an index is out of range",
            f"expected numbers from 0 to {field.below - 1}, got {number!r:.20}",
        )
    return int(number)


NAME = "scripted"

SECTION = re.compile(
    r"^\[BEGIN (.+?) ([0-9a-f]{32})\]\n(.*?)\n\[END \1 \2\]$", re.DOTALL | re.MULTILINE
)
_UNIT = re.compile(r"^\[\d+\] (.*)$", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z]{5,}")
_MOST_LINKS = 5


def scripted_reply(prompt: str) -> str:
    """Return the scripted reply to a prompt of this package.

    ``ValueError`` for any other prompt.
    """
    sections = {title: text for title, _, text in SECTION.findall(prompt)}
    units = {title: _UNIT.findall(text) for title, text in sections.items()}
    match sorted(sections):
        case ["CHUNK", "UNITS"]:
            return _links(sections["CHUNK"], units["UNITS"])
        case ["CONNECTION", *_]:
            return (
                "QUESTION:"
                f" {_question(_words(sections['CONNECTION'].partition(':')[2]))}"
            )
        case ["QUESTION", "UNITS"]:
            found = _holding(
                _words(sections["QUESTION"].partition(" about ")[2]), units["UNITS"]
            )
            return f"RELEVANT: {'YES' if found else 'NO'}\nINDICES: {_numbers(found)}"
        case ["SENTENCES"] | ["FIRST PART", "SECOND PART"]:
            return _question_on(*units.values())
        case names:
            raise ValueError(
                f"the scripted model got a prompt with {', '.join(names)}; expected one"
                " of ours"
            )


def _links(chunk: str, units: Sequence[str]) -> str:
    """Link the units that share the rarest words with the chunk."""
    chunk_words = set(_words(chunk))
    shared = [chunk_words.intersection(_words(unit)) for unit in units]
    common = Counter(word for words in shared for word in words)
    best = sorted(
        (min(common[word] for word in words), number)
        for number, words in enumerate(shared)
        if words
    )
    links = [
        f"LINKS {number}: Both tell of this:"
        f" {', '.join(_rarest(shared[number], common))}."
        for _, number in best[:_MOST_LINKS]
    ]
    return "\n".join(links) or "LINKS: NONE"


def _rarest(words: set[str], common: Counter[str]) -> list[str]:
    return sorted(words, key=lambda word: (common[word], word))[:3]


def _question_on(*parts: Sequence[str]) -> str:
    """Write a question about the rarest word that all parts have."""
    counts = Counter(
        word for part in parts for sentence in part for word in _words(sentence)
    )
    asked = _rarest(
        set.intersection(*(set(_words(" ".join(part))) for part in parts)), counts
    )[:1]
    found = [_holding(asked, part) for part in parts]
    lines = zip(
        ("FIRST", "SECOND") if len(parts) > 1 else ("INDICES",),
        map(_numbers, found),
        strict=True,
    )
    answer = parts[-1][found[-1][0]] if found[-1] else ""
    return "\n".join(
        [f"QUESTION: {_question(asked)}", f"ANSWER: {answer}", *map(": ".join, lines)]
    )


def _question(words: Sequence[str]) -> str:
    return (
        "What does the document tell its readers about"
        f" {' and '.join(words) or 'nothing'}?"
    )


def _holding(words: Sequence[str], units: Sequence[str]) -> list[int]:
    return [
        number
        for number, unit in enumerate(units)
        if set(words).intersection(_words(unit))
    ]


def _words(text: str) -> list[str]:
    found = (match.group().lower() for match in _WORD.finditer(text))
    return list(dict.fromkeys(word for word in found if word not in STOP_WORDS))


def _numbers(found: Sequence[int]) -> str:
    return ", ".join(map(str, found)) or "NONE"


_DIVISION = "\n===\n"
_VERSION = "version:"

Values = Mapping[str, Any]


class DroppedError(Exception):
    """A sub-document gives no example.

    The message is one of a few reasons, by which these are counted.
    """


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt without the material: what to do, what to reply, and the version of the wording."""

    version: str
    instructions: str
    closing: str


@dataclass(slots=True)
class Conversation:
    """Asks a language model for values, up to ``tries`` times if replies are malformed."""

    ask: Callable[[str], str]  # may raise `NoReplyError`
    prompts: Mapping[str, Prompt]
    tries: int = 3
    malformed: Counter[str] = field(
        default_factory=Counter
    )  # what was wrong with replies

    def values(
        self,
        name: str,
        sections: Mapping[str, str],
        fields: Sequence[Field],
        check: Callable[[Values], object] = lambda values: None,
    ) -> Values:
        """Return the values of the model's reply.

        `DroppedError` if no reply is in the right form.

        ``check`` raises `MalformedReplyError` for values that have the right form but
        are useless.
        """
        own = self.prompts[name]
        prompt = first = fenced_prompt(
            own.instructions, sections, f"{own.closing}\n{stated(fields)}"
        )
        for attempt in range(1, self.tries + 1):
            try:
                values = read(self.ask(prompt), fields)
                check(values)
                return values
            except NoReplyError as error:
                raise DroppedError(
                    f"no reply: {str(error).partition(':')[0]}"
                ) from None
            except MalformedReplyError as error:
                self.malformed[error.reason] += 1
                reason = error.reason
                # the prompt is changed, so that its reply is stored beside the first
                # one's
                fault = (
                    f"Reply {attempt} could not be used: {json.dumps(str(error))}."
                    " Write another."
                )
                prompt = f"{first}\n\n{fault}"
        raise DroppedError(f"{name}: {reason}")


def listed(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """List units with numbers from 0, one per line."""
    lines = (" ".join(text[slice(*span)].split()) for span in spans)
    return "\n".join(f"[{number}] {line}" for number, line in enumerate(lines))


def model_of(llm: object) -> LanguageModel:
    """Load a model by name (as `named_model`, or "scripted"), or wrap a model of either framework."""
    if llm == NAME:
        return LanguageModel(NAME, scripted_reply)
    return named_model(llm) if isinstance(llm, str) else language_model_of(llm)


def read_prompts(folder: Path | None = None) -> dict[str, Prompt]:
    """Read the prompts by name.

    Files of the user's folder replace files of the package with the same names.

    A file begins with a line ``version: NAME``. A line ``===`` separates the
    instructions, which come before the material, from the closing, after which the form
    of the reply is added.
    """
    own = sorted(
        files(__package__).joinpath("prompts").iterdir(), key=lambda entry: entry.name
    )
    found = {
        entry.name.removesuffix(".txt"): entry
        for entry in own
        if entry.name.endswith(".txt")
    }
    if folder is not None:
        if not folder.is_dir():
            raise ValueError(
                f"{folder}: no such folder; expected a folder with prompts"
            )
        for path in sorted(folder.glob("*.txt")):
            if path.stem not in found:
                raise ValueError(
                    f"{path}: no prompt has this name; expected one of"
                    f" {', '.join(found)}"
                )
            found[path.stem] = path
    prompts = {}
    for name, file in found.items():
        first, _, rest = (
            file.read_text(encoding="utf-8").replace("\r\n", "\n").partition("\n")
        )
        instructions, _, closing = (part.strip() for part in rest.partition(_DIVISION))
        if not (first.startswith(_VERSION) and instructions and closing):
            raise ValueError(
                f"{file}: expected a first line 'version: NAME', then instructions, a"
                " line ===, and a closing"
            )
        prompts[name] = Prompt(
            first.removeprefix(_VERSION).strip(), instructions, closing
        )
    return prompts


def prompts_digest(prompts: Mapping[str, Prompt]) -> str:
    """Return a digest of the wording of all prompts."""
    content = "\0".join(
        f"{name}\0{p.version}\0{p.instructions}\0{p.closing}"
        for name, p in prompts.items()
    )
    return hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()
