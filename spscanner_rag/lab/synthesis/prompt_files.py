"""The prompts: files with a version, each of which the user may replace."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from spscanner_rag.lab.llm.prompts import fenced_prompt

_DIVISION = "\n===\n"
_VERSION = "version:"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt without the material: what to do, what to write, and the version of the wording."""

    name: str
    version: str
    instructions: str
    closing: str

    def filled(self, sections: Mapping[str, str], form: str) -> str:
        """The prompt with the material, fenced, and the form of the reply."""
        return fenced_prompt(self.instructions, sections, f"{self.closing}\n{form}")


def read_prompts(folder: Path | None = None) -> dict[str, Prompt]:
    """The prompts by their names; files of the user's folder replace those of the package that have their names.

    A file begins with a line ``version: NAME``. A line ``===`` stands between the instructions, which come before
    the material, and the closing, after which the form of the reply is added.

    Raises
    ------
    ValueError
        For a folder that does not exist, a file with an unknown name, and a file that lacks one of these lines.
    """
    own = files(__package__).joinpath("prompts")
    texts = {
        entry.name.removesuffix(".txt"): (entry.name, entry.read_text(encoding="utf-8"))
        for entry in own.iterdir()
        if entry.name.endswith(".txt")
    }
    if folder is not None:
        if not folder.is_dir():
            raise ValueError(f"{folder}: no such folder; expected a folder with prompts")
        for path in sorted(folder.glob("*.txt")):
            if path.stem not in texts:
                raise ValueError(
                    f"{path}: no prompt has this name; expected one of {', '.join(sorted(texts))}"
                )
            texts[path.stem] = (str(path), path.read_text(encoding="utf-8"))
    return {name: _parsed(name, where, text) for name, (where, text) in sorted(texts.items())}


def prompts_digest(prompts: Mapping[str, Prompt]) -> str:
    """Identifies the wording of all prompts."""
    told = "\0".join(f"{p.name}\0{p.version}\0{p.instructions}\0{p.closing}" for p in prompts.values())
    return hashlib.sha256(told.encode("utf-8", "replace")).hexdigest()


def _parsed(name: str, where: str, text: str) -> Prompt:
    first, _, rest = text.replace("\r\n", "\n").partition("\n")
    instructions, division, closing = rest.partition(_DIVISION)
    if not first.startswith(_VERSION) or not division or not instructions.strip() or not closing.strip():
        raise ValueError(
            f"{where}: expected a first line 'version: NAME', then instructions, a line ===, and a closing"
        )
    version = first.removeprefix(_VERSION).strip()
    return Prompt(name, version, instructions.strip(), closing.strip())
