"""Options that take several values, in every command that has such options."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spscanner_rag.apps.cli.app import program
from spscanner_rag.apps.cli.several_values import SeveralValues


def every_command(command: Any, name: str = "spscanner") -> Iterator[tuple[str, Any]]:
    for part, inner in getattr(command, "commands", {}).items():
        yield from every_command(inner, f"{name} {part}")
    if not hasattr(command, "commands"):
        yield name, command


def repeatable(command: Any) -> list[Any]:
    return [
        param
        for param in command.params
        if param.param_type_name == "option" and param.multiple
    ]


COMMANDS = dict(every_command(program()))
SEVERAL = {name: command for name, command in COMMANDS.items() if repeatable(command)}


@pytest.mark.parametrize("name", SEVERAL)
def test_every_option_that_may_be_repeated_takes_several_values_and_its_help_says_so(
    name: str,
) -> None:
    command = SEVERAL[name]
    assert isinstance(command, SeveralValues)
    for option in repeatable(command):
        assert option.metavar.endswith("..."), option.name
        others = []
        for param in command.params:
            if param.required and param is not option:
                others += [
                    *param.opts[:1] * (param.param_type_name == "option"),
                    "given.toml",
                ]
        context = command.make_context(name, [*others, option.opts[0], "a", "b"])
        assert [str(value) for value in context.params[option.name]] == ["a", "b"]


def parsed(*args: str) -> dict[str, Any]:
    """The values that ``spscanner train`` understands."""
    found: dict[str, Any] = (
        COMMANDS["spscanner train"].make_context("train", ["--out", "o", *args]).params
    )
    return found


@pytest.mark.parametrize(
    "args",
    [
        ("r.toml", "--data", "a", "b", "c", "--validation", "d", "e"),
        (
            "--validation",
            "d",
            "e",
            "--progress",
            "r.toml",
            "--data=a",
            "--data",
            "b",
            "c",
        ),
        (
            "--data",
            "a",
            "b",
            "--validation",
            "d",
            "--data",
            "c",
            "--validation",
            "e",
            "--",
            "r.toml",
        ),
        ("--data", "a", "b", "c", "--validation", "d", "e", "--", "r.toml"),
    ],
)
def test_the_recipe_is_what_no_option_takes(args: tuple[str, ...]) -> None:
    found = parsed(*args)
    assert found["data"] == [Path("a"), Path("b"), Path("c")]
    assert found["validation"] == [Path("d"), Path("e")]
    assert found["recipe"] == Path("r.toml")


def test_standard_input_is_a_value() -> None:
    assert parsed("--data", "-", "-")["data"] == [Path("-"), Path("-")]


@pytest.mark.parametrize(
    ("args", "surplus"),
    [
        (("r.toml", "x", "--data", "a"), "x"),
        (("r.toml", "--data=a", "b"), "b"),
        (("r.toml", "--data", "a", "--seed", "b"), "--seed"),
        (("r.toml", "--base", "m", "n", "--data", "a"), "n"),
    ],
)
def test_other_surplus_words_are_refused(
    run: Any, args: tuple[str, ...], surplus: str
) -> None:
    run("train", *args, "--out", "o").refuses(surplus)
    assert not Path("o").exists()


@pytest.mark.parametrize(
    "line",
    [
        "a b --query p q --out o",
        "--query p q --out o a b",
        "--query p q --out o -- a b",
    ],
)
def test_words_of_a_command_that_needs_some(run: Any, line: str) -> None:
    found = COMMANDS["spscanner batch"].make_context("batch", line.split()).params
    assert (found["inputs"], found["query"]) == (["a", "b"], ["p", "q"])
    run("batch", "--query", "p", "a", "--out", "o").refuses(
        "Missing argument 'INPUT...'"
    )
