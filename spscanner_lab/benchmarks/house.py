"""Measures the structure of the code: rooms, floors, circles and sizes of functions.

The table of rooms stands in CONTRIBUTING.md; `tests/test_rooms.py` holds it.
"""

import argparse
import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

from spscanner_lab.benchmarks.report import Commands

REPOSITORY = Path(__file__).resolve().parents[2]
MOST_FLOORS = 9
MOST_STATEMENTS = 40  # in a function, at the 99th percentile

FRAMEWORK_PACKAGES = (
    "haystack_integrations.components.spscanner",
    "langchain_spscanner",
    "llama_index.postprocessor.spscanner",
    "llama_index.retrievers.spscanner",
)

_ROW = re.compile(r"^\| `([\w./]+?)/?`[^|]*\|[^|]*\|([^|]*)\|$", re.MULTILINE)
_ROOM_NAME = re.compile(r"`([\w/]+)`")


class Import(NamedTuple):
    """A module that imports a name of another, "" for the module itself."""

    module: str
    imported: str
    name: str


def add_commands(commands: Commands) -> list[argparse.ArgumentParser]:
    """Add `house`."""
    command = commands.add_parser(
        "house", help="rooms, floors, circles and statements a function"
    )
    command.set_defaults(measure=measure_house)
    return [command]


def measure_house(_: argparse.Namespace) -> tuple[dict[str, object], bool]:
    """Measure the house, and say whether all numbers are within their bounds."""
    imports = all_imports()
    floor_count = max(floors(rooms_used(imports)).values())
    circle = circle_in(imports)
    statements = statements_at_percentile(99, modules().values())
    rows: dict[str, object] = {
        "rooms": len(room_table()),
        f"floors (at most {MOST_FLOORS})": floor_count,
        "circle (none)": " -> ".join(circle) or "none",
        "imports against the table (none)": len(against_the_table(imports)),
        f"statements a function, p99 (at most {MOST_STATEMENTS})": statements,
    }
    within_bounds = floor_count <= MOST_FLOORS and statements <= MOST_STATEMENTS
    return rows, within_bounds and not circle and not against_the_table(imports)


def room_table() -> dict[str, set[str]]:
    """Rooms in the order of CONTRIBUTING's table, with those that each may import."""
    page = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rooms: dict[str, set[str]] = {}
    for name, needs in _ROW.findall(page):
        named = set(_ROOM_NAME.findall(needs))
        allowed = set(rooms) - named if "all above" in needs else named
        rooms[name.removesuffix(".py")] = allowed
    return rooms


def modules() -> dict[str, Path]:
    """Every module of the two packages and of the integrations, by its dotted name."""
    path_by_module: dict[str, Path] = {}
    for folder, root in (
        ("spscanner_rag", REPOSITORY),
        ("spscanner_lab", REPOSITORY),
        ("integrations", REPOSITORY / "integrations"),
    ):
        for path in (REPOSITORY / folder).rglob("*.py"):
            parts = path.relative_to(root).with_suffix("").parts
            if parts[-1] == "__init__":
                parts = parts[:-1]
            path_by_module[".".join(parts)] = path
    return path_by_module


def room_of(module: str) -> str | None:
    """The room of a module, or None for a package itself and for modules of others."""
    if module.startswith(FRAMEWORK_PACKAGES):
        return "integrations"
    package, *inner = module.split(".")
    if package == "spscanner_lab":
        return package
    if package != "spscanner_rag" or not inner:
        return None
    if inner[:2] == ["apps", "cli"]:
        return "apps/cli"
    return inner[0]


def imports_of(
    module: str, source: str, path_by_module: Mapping[str, Path]
) -> Iterator[Import]:
    """The imports of a module, including those in functions and for type checkers."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(module, alias.name, "")
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(
                    f"{module}: got a relative import; expected a full one"
                )
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if inner in path_by_module:
                    yield Import(module, inner, "")
                else:
                    yield Import(module, str(node.module), alias.name)


def all_imports() -> list[Import]:
    """Every import in the house."""
    path_by_module = modules()
    imports: list[Import] = []
    for module, path in path_by_module.items():
        imports += imports_of(module, path.read_text(encoding="utf-8"), path_by_module)
    return imports


def against_the_table(imports: Sequence[Import]) -> list[str]:
    """Imports that the table does not allow, one per line."""
    rooms = room_table()
    order = list(rooms)
    complaints = []
    for module, imported, _ in imports:
        room = room_of(module)
        imported_room = room_of(imported)
        if room is None or imported_room is None or room == imported_room:
            continue
        if order.index(imported_room) > order.index(room):
            complaints.append(
                f"{module} imports {imported}: "
                f"{imported_room} stands below {room} in the table"
            )
        elif imported_room not in rooms[room]:
            complaints.append(
                f"{module} imports {imported}: "
                f"the table does not say that {room} needs {imported_room}"
            )
    return complaints


def rooms_used(imports: Iterable[Import]) -> dict[str, set[str]]:
    """The rooms that each room imports."""
    used: dict[str, set[str]] = {room: set() for room in room_table()}
    for module, imported, _ in imports:
        room = room_of(module)
        imported_room = room_of(imported)
        if room and imported_room and room != imported_room:
            used[room].add(imported_room)
    return used


def floors(rooms: Mapping[str, set[str]]) -> dict[str, int]:
    """The floor of each room: 1 without imports, else one above all that it imports.

    The command line stands on the floor of the `apps` that it is a part of.
    """
    floor_by_room: dict[str, int] = {}
    for room in TopologicalSorter(rooms).static_order():
        below = [floor_by_room[imported] for imported in rooms[room]]
        if room == "apps/cli":
            floor_by_room[room] = floor_by_room["apps"]
        else:
            floor_by_room[room] = 1 + max(below, default=0)
    return floor_by_room


def circle_in(imports: Iterable[Import]) -> list[str]:
    """Modules that import each other in a circle, none if there is no circle."""
    path_by_module = modules()
    graph: dict[str, set[str]] = {}
    for module, imported, _ in imports:
        # A package re-exports names of its own modules, which do not import it back.
        inside = module == imported or module.startswith(f"{imported}.")
        if imported in path_by_module and not inside:
            graph.setdefault(module, set()).add(imported)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def statements_at_percentile(percent: int, paths: Iterable[Path]) -> int:
    """Statements in a function, at a percentile of all functions in these files."""
    counts = []
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                inside = [part for part in ast.walk(node) if isinstance(part, ast.stmt)]
                counts.append(len(inside) - 1)
    counts.sort()
    return counts[len(counts) * percent // 100]
