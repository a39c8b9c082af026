"""Measures the project's size: lines of code and tests, words of documentation, what the integrations import."""

import argparse
import ast
import subprocess
from pathlib import Path

from spscanner_lab.benchmarks.report import Commands

REPOSITORY = Path(__file__).resolve().parents[2]
LIMITS = {
    "lines, spscanner_rag and integrations": 34_000,
    "lines, imported by the integrations": 13_500,
    "lines, tests": 36_000,
    "words, docs": 24_000,
    "lines, README": 130,
    "entries, spscanner_rag": 14,
}


def add_commands(commands: Commands) -> list[argparse.ArgumentParser]:
    """Add `size`."""
    command = commands.add_parser(
        "size", help="lines of code and tests, words of docs, and their bounds"
    )
    command.set_defaults(measure=measure_size)
    return [command]


def measure_size(_: argparse.Namespace) -> tuple[dict[str, object], bool]:
    """Count the files that git tracks; False if a number is above its bound."""
    code = _tracked("spscanner_rag/*.py", "integrations/*.py")
    entries = {
        path.relative_to(REPOSITORY / "spscanner_rag").parts[0]
        for path in code
        if "spscanner_rag" in path.parts[:-1]
        and path.is_relative_to(REPOSITORY / "spscanner_rag")
    }
    counts = (
        _lines(code),
        _lines(_imported_by_integrations()),
        _lines(_tracked("tests/*.py")),
        sum(
            len(path.read_text(encoding="utf-8").split())
            for path in _tracked("docs/*.md", "README.md", "CONTRIBUTING.md")
        ),
        _lines([REPOSITORY / "README.md"]),
        len(entries - {"__init__.py"}),
    )
    rows: dict[str, object] = {
        f"{name} (at most {limit:,})": count
        for (name, limit), count in zip(LIMITS.items(), counts, strict=True)
    }
    return rows, all(
        count <= limit for count, limit in zip(counts, LIMITS.values(), strict=True)
    )


def _tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", *patterns],
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return [
        path
        for name in listed.split("\0")
        if name and (path := REPOSITORY / name).is_file()
    ]


def _lines(paths: list[Path]) -> int:
    return sum(path.read_bytes().count(b"\n") for path in paths)


def _imported_by_integrations() -> list[Path]:
    """The modules of the integrations and all that they import, also in functions and for type checkers."""
    modules = {}
    for root in (REPOSITORY, REPOSITORY / "integrations"):
        folder = root / "spscanner_rag" if root == REPOSITORY else root
        for path in folder.rglob("*.py"):
            parts = path.relative_to(root).with_suffix("").parts
            modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    reached: set[str] = set()
    todo = [name for name in modules if not name.startswith("spscanner_rag")]
    while todo:
        name = todo.pop()
        if name in reached or name not in modules:
            continue
        reached.add(name)
        todo.append(name.rpartition(".")[0])  # a module's packages are imported with it
        for node in ast.walk(ast.parse(modules[name].read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                todo += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                todo += [
                    str(node.module),
                    *(f"{node.module}.{alias.name}" for alias in node.names),
                ]
    return [modules[name] for name in reached]
