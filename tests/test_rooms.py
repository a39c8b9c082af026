"""The rooms of the house: which may import which, by the table in CONTRIBUTING.md."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
ROW = re.compile(r"^\| `([\w./]+?)/?`[^|]*\|[^|]*\|([^|]*)\|$", re.MULTILINE)
FRAMEWORK_PACKAGES = (
    "haystack_integrations.components.spscanner",
    "langchain_spscanner",
    "llama_index.postprocessor.spscanner",
    "llama_index.retrievers.spscanner",
)

Import = tuple[
    str, str, str
]  # importing module, imported module, imported name ("" for the module itself)


def table() -> dict[str, set[str]]:
    """Rooms in the order of the table, and the rooms that each may import."""
    page = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rooms: dict[str, set[str]] = {}
    for name, needs in ROW.findall(page):
        named = set(re.findall(r"`(\w+)`", needs))
        rooms[name.removesuffix(".py")] = (
            set(rooms) - named if "all above" in needs else named
        )
    return rooms


def modules() -> dict[str, Path]:
    """Every module of the package, of the integrations and of the benchmarks."""
    roots = {
        "spscanner_rag": REPOSITORY,
        "integrations": REPOSITORY / "integrations",
        "spscanner_lab.benchmarks": REPOSITORY,
    }
    found = {}
    for folder, root in roots.items():
        for path in (REPOSITORY / folder).rglob("*.py"):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def room_of(module: str) -> str | None:
    """The room of a module; None for the package itself, and for modules of others."""
    if module.startswith(FRAMEWORK_PACKAGES):
        return "integrations"
    head, *rest = module.split(".")
    if head == "spscanner_lab.benchmarks":
        return "spscanner_lab.benchmarks"
    if head != "spscanner_rag" or not rest:
        return None
    return "apps/cli" if rest[:2] == ["apps", "cli"] else rest[0]


def imports_of(module: str, source: str, known: Mapping[str, Path]) -> Iterator[Import]:
    """The imports of a module, including those in functions and for type checkers."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((module, alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: a relative import"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield (
                    (module, inner, "")
                    if inner in known
                    else (module, str(node.module), alias.name)
                )


def all_imports() -> list[Import]:
    """Every import in the house."""
    known = modules()
    return [
        found
        for module, path in known.items()
        for found in imports_of(module, path.read_text(encoding="utf-8"), known)
    ]


def against_the_table(
    imports: Sequence[Import], rooms: Mapping[str, set[str]]
) -> list[str]:
    """Imports that the table does not allow, one per line."""
    order = list(rooms)
    wrong = []
    for module, imported, _ in imports:
        room, other = room_of(module), room_of(imported)
        if room is None or other is None or room == other:
            continue
        if order.index(other) > order.index(room):
            wrong.append(
                f"{module} imports {imported}: {other} stands below {room} in the table"
            )
        elif other not in rooms[room]:
            wrong.append(
                f"{module} imports {imported}: the table does not say that {room} needs"
                f" {other}"
            )
    return wrong


def round_the_api(imports: Sequence[Import], api: Sequence[str]) -> list[str]:
    """Imports of an integration from elsewhere than `retrieval`'s ``__all__``, `Scanner` and `scorers`."""
    allowed = {
        ("spscanner_rag", "Scanner"),
        ("spscanner_rag.scanner", "Scanner"),
    }
    allowed |= {("spscanner_rag.retrieval", name) for name in api}
    return [
        f"{module} imports {name or 'all'} from {imported}"
        for module, imported, name in imports
        if room_of(module) == "integrations"
        and imported.split(".")[0] == "spscanner_rag"
        and imported != "spscanner_rag.scorers"
        and (imported, name) not in allowed
    ]


def floors(rooms: Mapping[str, set[str]]) -> dict[str, int]:
    """The floor of each room: 1 for a room that imports none, else one above the highest room that it imports."""
    found: dict[str, int] = {}
    for room in TopologicalSorter(rooms).static_order():
        found[room] = 1 + max((found[other] for other in rooms[room]), default=0)
    return found


def test_every_import_is_one_that_the_table_allows() -> None:
    assert against_the_table(all_imports(), table()) == []


def test_the_table_names_the_rooms_of_the_tree() -> None:
    package = REPOSITORY / "spscanner_rag"
    there = {
        path.relative_to(package).parts[0].removesuffix(".py")
        for path in package.rglob("*.py")
    } - {"__init__"}
    assert set(table()) == there | {
        "apps/cli",
        "integrations",
        "spscanner_lab.benchmarks",
    }
    assert len(there) <= 14
    used: dict[str, set[str]] = {room: set() for room in table()}
    for module, imported, _ in all_imports():
        room, other = room_of(module), room_of(imported)
        if room and other and room != other:
            used[room].add(other)
    assert max(floors(used).values()) <= 9


def test_no_modules_import_each_other_in_a_circle() -> None:
    known = modules()
    graph: dict[str, set[str]] = {}
    for module, imported, _ in all_imports():
        # A package re-exports names of its own modules, which do not import it back.
        if (
            imported in known
            and imported != module
            and not module.startswith(f"{imported}.")
        ):
            graph.setdefault(module, set()).add(imported)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_integrations_import_the_integration_api_alone() -> None:
    from spscanner_rag import retrieval

    assert round_the_api(all_imports(), retrieval.__all__) == []


@pytest.mark.parametrize(
    ("imported", "message"),
    [
        (
            ("spscanner_rag.text.units", "spscanner_rag.scanner", "Scanner"),
            "scanner stands below text",
        ),
        (
            (
                "spscanner_rag.apps.serving.app",
                "spscanner_lab.evidence.questions",
                "read_documents",
            ),
            "does not say that apps",
        ),
        (
            ("langchain_spscanner.retriever", "spscanner_rag.baselines", "BM25"),
            "baselines stands below integrations",
        ),
        (
            (
                "spscanner_lab.evaluation.run",
                "spscanner_rag.apps.pages.report",
                "render",
            ),
            "apps stands below lab",
        ),
    ],
)
def test_one_more_import_against_the_table_is_noticed(
    imported: Import, message: str
) -> None:
    assert any(
        message in line
        for line in against_the_table([*all_imports(), imported], table())
    )


@pytest.mark.parametrize(
    "imported",
    [
        ("langchain_spscanner.retriever", "spscanner_rag.text.units", "Unit"),
        ("langchain_spscanner.retriever", "spscanner_rag.retrieval.search", "search"),
        ("llama_index.retrievers.spscanner.base", "spscanner_rag.retrieval", "_Pool"),
    ],
)
def test_one_more_import_round_the_api_is_noticed(imported: Import) -> None:
    from spscanner_rag import retrieval

    assert len(round_the_api([*all_imports(), imported], retrieval.__all__)) == 1
