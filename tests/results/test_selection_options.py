"""Every program that offers a selection has all of its options, or a reason not to."""

import inspect
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import pytest

from spscanner_rag import ScanResult
from spscanner_rag.results.selection import SELECTION_OPTIONS

PAGE = Path(__file__).parents[2] / "docs" / "selection.md"


@dataclass
class Program:
    """What a program offers: the names of its options, and why it lacks the others."""

    offered: Collection[str]
    left_out: Mapping[str, str] = field(default_factory=dict)
    own_names: Mapping[str, str] = field(default_factory=dict)

    def name_of(self, option: str) -> str:
        return self.own_names.get(option, option)


def in_python() -> Program:
    names = set(inspect.signature(ScanResult.select).parameters)
    return Program(names, {"top_k_per_text": "a result has one text"})


def in_context() -> Program:
    names = set(inspect.signature(ScanResult.context).parameters)
    left_out = dict.fromkeys(("order", "merge"), "a context is in the document's order")
    return Program(names, left_out | {"top_k_per_text": "a result has one text"})


def in_scan() -> Program:
    from spscanner_rag.apps.cli.scan import ScanSelection

    names = {option.name for option in fields(ScanSelection)}  # type: ignore[arg-type]
    return Program(names, ScanSelection.left_out)


def in_batch() -> Program:
    from spscanner_rag.apps.cli.batch import RecordSelection

    names = {option.name for option in fields(RecordSelection)}  # type: ignore[arg-type]
    return Program(names, RecordSelection.left_out)


def in_http() -> Program:
    pytest.importorskip("fastapi", reason="the extra serve is not installed")
    from spscanner_rag.apps.serving.schemas import Scan
    from spscanner_rag.apps.serving.selection_fields import LEFT_OUT

    return Program(set(Scan.model_fields), LEFT_OUT)


def in_agents() -> Program:
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    from spscanner_rag.apps.agent_selection import LEFT_OUT, with_selection_options
    from spscanner_rag.apps.mcp import Library

    tool = with_selection_options(Library.search_folder)
    names = set(inspect.signature(tool).parameters) - set(LEFT_OUT)
    return Program(names, LEFT_OUT)


def in_frameworks() -> Program:
    pytest.importorskip("pydantic", reason="no extra with pydantic is installed")
    from spscanner_rag.retrieval.scan_fields import ScanFields

    own_names = {"context": "context_sentences", "merge": "merge_adjacent"}
    reason = "each class names them as its framework does, in `limits`"
    left_out = dict.fromkeys(("top_k", "top_k_per_text"), reason)
    return Program(set(ScanFields.model_fields), left_out, own_names)


PROGRAMS = {
    "Python": in_python,
    "context": in_context,
    "scan": in_scan,
    "batch": in_batch,
    "HTTP": in_http,
    "agents": in_agents,
    "frameworks": in_frameworks,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_has_every_option_or_a_reason(name: str) -> None:
    program = PROGRAMS[name]()
    lacking: set[str] = set()
    for option in SELECTION_OPTIONS:
        if program.name_of(option) not in program.offered:
            lacking.add(option)
    missing = lacking - set(program.left_out)
    assert not missing, f"{name} lacks {missing}: offer them, or say why not"
    assert lacking == set(program.left_out), f"{name} has what it says it lacks"


@pytest.mark.parametrize("function", [ScanResult.select, ScanResult.context])
def test_methods_have_the_defaults_of_the_table(function: Any) -> None:
    for name, parameter in inspect.signature(function).parameters.items():
        if name in SELECTION_OPTIONS:
            assert parameter.default == SELECTION_OPTIONS[name].default


def test_the_fields_of_frameworks_have_the_defaults_of_the_table() -> None:
    program = in_frameworks()
    from spscanner_rag.retrieval.scan_fields import ScanFields

    for name, option in SELECTION_OPTIONS.items():
        info = ScanFields.model_fields.get(program.name_of(name))
        if info is not None:
            default = "score" if name == "order" else option.default
            assert info.default == default, name


def table() -> list[str]:
    """The table of the documentation."""
    lines = ["| option | default | meaning |", "|---|---|---|"]
    for name, option in SELECTION_OPTIONS.items():
        lines.append(f"| `{name}` | {option.default} | {option.meaning} |")
    return lines


def test_the_documentation_has_the_table() -> None:
    shown = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    expected = [line for line in table() if line.startswith("| ")]
    missing = [line for line in expected if line not in shown]
    assert not missing, f"docs/selection.md: the table lacks {missing}"
    assert shown[: len(expected)] == expected


def test_each_option_has_one_sentence_of_meaning() -> None:
    for option in SELECTION_OPTIONS.values():
        assert option.meaning.endswith(".")
        assert ". " not in option.meaning


@pytest.mark.parametrize("option", SELECTION_OPTIONS.values(), ids=SELECTION_OPTIONS)
def test_bounds_and_defaults_agree_with_the_check(option: Any) -> None:
    option.check(option.default)
    for bound, outside in ((option.lowest, -1), (option.highest, 1)):
        if bound is not None:
            option.check(bound)
            with pytest.raises(ValueError, match=f"^{option.name}: got "):
                option.check(bound + outside)
