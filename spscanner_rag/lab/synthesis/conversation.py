"""Prompts from files, and how a language model is asked for one reply in one form, again if it is malformed."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from spscanner_rag.lab.llm.asking import NoReplyError
from spscanner_rag.lab.llm.language_models import LanguageModel, language_model_of, named_model
from spscanner_rag.lab.llm.prompts import fenced_prompt
from spscanner_rag.lab.synthesis.reply_form import Field, MalformedReplyError, read, stated
from spscanner_rag.lab.synthesis.scripted import NAME, SCRIPTED

_DIVISION = "\n===\n"
_VERSION = "version:"

Values = Mapping[str, Any]


class DroppedError(Exception):
    """No example comes of this sub-document; the message is one of a few reasons, by which these are counted."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt without the material: what to do, what to write, and the version of the wording."""

    name: str
    version: str
    instructions: str
    closing: str

    def filled(self, sections: Mapping[str, str], form: str) -> str:
        """Return the prompt with the material, fenced, and the form of the reply."""
        return fenced_prompt(self.instructions, sections, f"{self.closing}\n{form}")


@dataclass(slots=True)
class Conversation:
    """Asks a language model for values, up to ``tries`` times if a reply is malformed."""

    ask: Callable[[str], str]  # may raise `NoReplyError`
    prompts: Mapping[str, Prompt]
    tries: int = 3
    malformed: Counter[str] = field(default_factory=Counter)  # what was wrong with replies

    def values(
        self,
        name: str,
        sections: Mapping[str, str],
        fields: Sequence[Field],
        check: Callable[[Values], object] = lambda values: None,
    ) -> Values:
        """Return the values that the model replies with; `DroppedError` if no try is in the right form.

        ``check`` raises `MalformedReplyError` for values that are in the right form and still useless.
        """
        prompt = first = self.prompts[name].filled(sections, stated(fields))
        for attempt in range(1, self.tries + 1):
            try:
                values = read(self.ask(prompt), fields)
                check(values)
                return values
            except NoReplyError as error:
                raise DroppedError(f"no reply: {str(error).partition(':')[0]}") from None
            except MalformedReplyError as error:
                self.malformed[error.reason] += 1
                reason = error.reason
                # another prompt, so that the reply to the first is kept beside the reply to this one
                fault = f"Reply {attempt} could not be used: {json.dumps(str(error))}. Write another."
                prompt = f"{first}\n\n{fault}"
        raise DroppedError(f"{name}: {reason}")


def listed(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """List units with numbers from 0, a line each."""
    lines = (" ".join(text[slice(*span)].split()) for span in spans)
    return "\n".join(f"[{number}] {line}" for number, line in enumerate(lines))


def model_of(llm: object) -> LanguageModel:
    """Load the model of a name (`named_model`, or "scripted"), or take one of either framework."""
    if llm == NAME:
        return SCRIPTED
    return named_model(llm) if isinstance(llm, str) else language_model_of(llm)


def read_prompts(folder: Path | None = None) -> dict[str, Prompt]:
    """Read the prompts by name; files of the user's folder replace those of the package with the same names.

    A file begins with a line ``version: NAME``. A line ``===`` separates the instructions, which come before
    the material, and the closing, after which the form of the reply is added.
    """
    own = sorted(files(__package__).joinpath("prompts").iterdir(), key=lambda entry: entry.name)
    found = {entry.name.removesuffix(".txt"): entry for entry in own if entry.name.endswith(".txt")}
    if folder is not None:
        if not folder.is_dir():
            raise ValueError(f"{folder}: no such folder; expected a folder with prompts")
        for path in sorted(folder.glob("*.txt")):
            if path.stem not in found:
                raise ValueError(f"{path}: no prompt has this name; expected one of {', '.join(found)}")
            found[path.stem] = path
    return {name: _parsed(name, str(file), file.read_text(encoding="utf-8")) for name, file in found.items()}


def prompts_digest(prompts: Mapping[str, Prompt]) -> str:
    """Return a digest of the wording of all prompts."""
    content = "\0".join(f"{p.name}\0{p.version}\0{p.instructions}\0{p.closing}" for p in prompts.values())
    return hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()


def _parsed(name: str, where: str, text: str) -> Prompt:
    first, _, rest = text.replace("\r\n", "\n").partition("\n")
    instructions, division, closing = rest.partition(_DIVISION)
    if not first.startswith(_VERSION) or not division or not instructions.strip() or not closing.strip():
        raise ValueError(
            f"{where}: expected a first line 'version: NAME', then instructions, a line ===, and a closing"
        )
    version = first.removeprefix(_VERSION).strip()
    return Prompt(name, version, instructions.strip(), closing.strip())
