"""Files of prompts: those of the package, and a user's that replace them."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

_DIVISION = "\n===\n"
_VERSION = "version:"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt without the material that it is about.

    Attributes
    ----------
    version : str
        The version of the wording.
    instructions, closing : str
        What to do, before the material, and what to reply, after it.
    """

    version: str
    instructions: str
    closing: str


def read_prompts(
    folder: Path | None = None, package: str = "spscanner_lab.synthesis"
) -> dict[str, Prompt]:
    """Read the prompts of a package by name.

    Files of the user's folder replace files of the package with the same names.

    A file begins with a line ``version: NAME``. A line ``===`` separates the
    instructions, which come before the material, from the closing, after which the form
    of the reply is added.

    Examples
    --------
    >>> from spscanner_lab.synthesis.prompt_files import read_prompts
    >>> read_prompts()["label_units"].version
    '1'
    """
    file_by_name = _files_of_package(package)
    if folder is not None:
        file_by_name |= _files_of_user(folder, file_by_name)
    prompts = {}
    for name, file in file_by_name.items():
        prompts[name] = _read_prompt(file)
    return prompts


def _files_of_package(package: str) -> dict[str, Traversable]:
    entries = sorted(
        files(package).joinpath("prompts").iterdir(), key=lambda entry: entry.name
    )
    file_by_name = {}
    for entry in entries:
        if entry.name.endswith(".txt"):
            file_by_name[entry.name.removesuffix(".txt")] = entry
    return file_by_name


def _files_of_user(
    folder: Path, file_by_name: Mapping[str, Traversable]
) -> dict[str, Traversable]:
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder; expected a folder with prompts")
    replacements: dict[str, Traversable] = {}
    for path in sorted(folder.glob("*.txt")):
        if path.stem not in file_by_name:
            raise ValueError(
                f"{path}: no prompt has this name; expected one of"
                f" {', '.join(file_by_name)}"
            )
        replacements[path.stem] = path
    return replacements


def _read_prompt(file: Traversable) -> Prompt:
    content = file.read_text(encoding="utf-8").replace("\r\n", "\n")
    first_line, _, remainder = content.partition("\n")
    instructions, _, closing = remainder.partition(_DIVISION)
    instructions = instructions.strip()
    closing = closing.strip()
    if not (first_line.startswith(_VERSION) and instructions and closing):
        raise ValueError(
            f"{file}: expected a first line 'version: NAME', then instructions, a"
            " line ===, and a closing"
        )
    version = first_line.removeprefix(_VERSION).strip()
    return Prompt(version, instructions, closing)


def prompts_digest(prompts: Mapping[str, Prompt]) -> str:
    """Return a digest of the wording of all prompts."""
    parts = []
    for name, prompt in prompts.items():
        parts += [name, prompt.version, prompt.instructions, prompt.closing]
    content = "\0".join(parts)
    return hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()
