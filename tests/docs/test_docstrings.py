"""The examples in docstrings run, and what the API reference lists has one."""

import doctest
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[2]
ROOTS = (
    REPOSITORY / "spscanner_rag",
    REPOSITORY / "spscanner_lab",
    REPOSITORY / "integrations",
)
FLAGS = (
    doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
)

MISSING_EXTRA = re.compile(r"ImportError: .* needs .*: pip install .*")


def modules_with_examples() -> Iterator[str]:
    """Names of the modules that have an example in a docstring."""
    for root in ROOTS:
        folder = root if root.name == "integrations" else REPOSITORY
        for path in sorted(root.rglob("*.py")):
            if ">>> " in path.read_text(encoding="utf-8"):
                parts = path.relative_to(folder).with_suffix("").parts
                yield ".".join(part for part in parts if part != "__init__")


def listed_names() -> list[str]:
    """What the API reference lists, as the site's builder reads it."""
    names: list[str] = []
    for page in sorted((REPOSITORY / "docs" / "site" / "api").glob("*.md")):
        names += re.findall(r"^::: (\S+)", page.read_text("utf-8"), re.MULTILINE)
    return names


def imported(module: str) -> Any:
    """A module, or a skipped test if a package that it needs is not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        pytest.skip(str(error))


def methods(documented: type) -> Iterator[object]:
    """What a class, or the class that it extends, defines itself."""
    for extended in documented.__mro__:
        if extended.__module__.startswith(documented.__module__.partition(".")[0]):
            yield from vars(extended).values()


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_show_what_they_print(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = imported(name)
    monkeypatch.chdir(tmp_path)  # for examples that write files
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    failures: list[str] = []
    for example in doctest.DocTestFinder(exclude_empty=True).find(module):
        runner.run(example, out=failures.append)
    report = "".join(failures)
    if missing := MISSING_EXTRA.search(report):
        pytest.skip(missing[0])
    assert not runner.failures, report


@pytest.mark.parametrize("name", listed_names())
def test_what_the_reference_lists_has_an_example(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    documented = getattr(imported(module), attribute)
    docstrings = [inspect.getdoc(documented) or ""]
    if inspect.isclass(documented):
        docstrings += [inspect.getdoc(method) or "" for method in methods(documented)]
    assert any(">>> " in docstring for docstring in docstrings)
