"""The rooms of the house: which may import which, by the table in CONTRIBUTING.md."""

from collections.abc import Sequence

import pytest

from spscanner_lab.benchmarks.house import (
    MOST_FLOORS,
    MOST_STATEMENTS,
    REPOSITORY,
    Import,
    against_the_table,
    all_imports,
    circle_in,
    floors,
    modules,
    room_of,
    room_table,
    rooms_used,
    statements_at_percentile,
)


@pytest.fixture(scope="module")
def imports() -> list[Import]:
    """All imports of the tree, found once."""
    return all_imports()


def round_the_api(imports: Sequence[Import], api: Sequence[str]) -> list[str]:
    """Imports of integrations from elsewhere than API, `Scanner` and `scorers`."""
    allowed = {("spscanner_rag", "Scanner"), ("spscanner_rag.scanner", "Scanner")}
    allowed |= {("spscanner_rag.retrieval", name) for name in api}
    return [
        f"{module} imports {name or 'all'} from {imported}"
        for module, imported, name in imports
        if room_of(module) == "integrations"
        and imported.split(".")[0] in ("spscanner_rag", "spscanner_lab")
        and imported != "spscanner_rag.scorers"
        and (imported, name) not in allowed
    ]


def test_every_import_is_one_that_the_table_allows(imports: list[Import]) -> None:
    assert against_the_table(imports) == []


def test_the_retriever_imports_nothing_of_the_workshop(imports: list[Import]) -> None:
    wrong = [
        (module, imported)
        for module, imported, _ in imports
        if not module.startswith("spscanner_lab")
        and imported.startswith("spscanner_lab")
    ]
    assert wrong == []


def test_the_table_names_the_rooms_of_the_tree(imports: list[Import]) -> None:
    package = REPOSITORY / "spscanner_rag"
    entries = {
        path.relative_to(package).parts[0].removesuffix(".py")
        for path in package.rglob("*.py")
    }
    rooms = entries - {"__init__"}
    assert set(room_table()) == rooms | {"apps/cli", "integrations", "spscanner_lab"}
    assert max(floors(rooms_used(imports)).values()) <= MOST_FLOORS


def test_no_modules_import_each_other_in_a_circle(imports: list[Import]) -> None:
    assert circle_in(imports) == []


def test_functions_fit_on_a_screen() -> None:
    assert statements_at_percentile(99, modules().values()) <= MOST_STATEMENTS


def test_integrations_import_the_integration_api_alone(imports: list[Import]) -> None:
    from spscanner_rag import retrieval

    assert round_the_api(imports, retrieval.__all__) == []


@pytest.mark.parametrize(
    ("added", "message"),
    [
        (
            Import("spscanner_rag.text.units", "spscanner_rag.scanner", "Scanner"),
            "scanner stands below text",
        ),
        (
            Import(
                "spscanner_rag.apps.serving.app",
                "spscanner_lab.evidence.questions",
                "read_documents",
            ),
            "spscanner_lab stands below apps",
        ),
        (
            Import("langchain_spscanner.retriever", "spscanner_rag.baselines", "BM25"),
            "baselines stands below integrations",
        ),
        (
            Import("spscanner_lab.evaluation.run", "langchain_spscanner", "x"),
            "does not say that spscanner_lab needs integrations",
        ),
    ],
)
def test_one_more_import_against_the_table_is_noticed(
    imports: list[Import], added: Import, message: str
) -> None:
    complaints = against_the_table([*imports, added])
    assert any(message in complaint for complaint in complaints)


@pytest.mark.parametrize(
    "added",
    [
        Import("langchain_spscanner.retriever", "spscanner_rag.text.units", "Unit"),
        Import(
            "langchain_spscanner.retriever", "spscanner_rag.retrieval.search", "search"
        ),
        Import(
            "llama_index.retrievers.spscanner.base", "spscanner_rag.retrieval", "_Pool"
        ),
    ],
)
def test_one_more_import_round_the_api_is_noticed(
    imports: list[Import], added: Import
) -> None:
    from spscanner_rag import retrieval

    assert len(round_the_api([*imports, added], retrieval.__all__)) == 1


def test_a_circle_is_noticed(imports: list[Import]) -> None:
    added = Import("spscanner_rag.text.units", "spscanner_rag.scanner", "Scanner")
    assert "spscanner_rag.text.units" in circle_in([*imports, added])
