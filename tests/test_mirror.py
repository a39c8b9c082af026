"""`tests/` mirrors the packages: a test file has the name of the module that it tests.

An aspect of the module may follow its name: `test_scanner_prepare.py` tests what
`scanner.py` does for `prepare`.
"""

from fnmatch import fnmatch
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
REPOSITORY = TESTS.parent

KINDS = {
    "attack/*": "a hostile input goes through many modules",
    "docs/*": "what is tested are pages, not modules",
    "examples/*": "what is tested are scripts and notebooks of examples/",
    "files/test_nothing_lost.py": "one rule over all readers",
    "files/test_files_of_users.py": "one file of each kind, through its reader",
    "files/test_further_files.py": "further files, through their readers",
    "*_browser.py": "a page in a browser, with its style and script",
    "*/test_api.py": "what a room hands to other rooms",
    "*/test_browser.py": "a page in a browser, with its style and script",
    "*/test_contract.py": "what all classes with one interface promise",
    "*/test_all_outputs.py": "what all writers do with hostile names",
    "integrations/test_*.py": "what holds for every framework",
    "test_clean_environment.py": "the package without its optional libraries",
    "test_examples.py": "what is tested are the examples in docstrings",
    "test_mirror.py": "this file",
    "test_package.py": "the distribution: its names, extras and files",
    "test_light_distribution.py": "the distribution without torch",
    "test_without_torch.py": "the package where torch is not installed",
    "test_rooms.py": "the table of rooms in CONTRIBUTING.md",
}
"""Files that test no single module, by pattern, each with the reason."""

HOSTS = {
    "haystack": "haystack_integrations",
    "langchain": "langchain_spscanner",
    "llama_index": "llama_index",
}
"""The folder of integrations/ that a folder of tests/integrations/ mirrors."""

FILES = sorted(path.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py"))


def is_of_a_kind(file: str) -> bool:
    return any(fits(file, pattern) for pattern in KINDS)


def fits(file: str, pattern: str) -> bool:
    """Whether a path has a pattern, in which ``*`` is not of several folders.

    Only a pattern that begins with ``*`` has files of any folder.
    """
    of_any_folder = pattern.startswith("*") or file.count("/") == pattern.count("/")
    return of_any_folder and fnmatch(file, pattern)


def mirrored_room(file: str) -> Path:
    """The folder of the modules that the tests in a folder are of."""
    parts = Path(file).parent.parts
    if parts[:1] == ("lab",):
        return REPOSITORY.joinpath("spscanner_lab", *parts[1:])
    if parts[:1] == ("integrations",):
        return REPOSITORY.joinpath("integrations", HOSTS[parts[1]], *parts[2:])
    return REPOSITORY.joinpath("spscanner_rag", *parts)


def names_a_module(file: str) -> bool:
    """Whether a module or a folder of the mirrored room begins the file's name."""
    words = Path(file).stem.removeprefix("test_").split("_")
    room = mirrored_room(file)
    for stop in range(1, len(words) + 1):
        name = "_".join(words[:stop])
        for module in (f"{name}.py", f"__{name}__.py"):
            if (room / module).is_file():
                return True
        if (room / name).is_dir():
            return True
    return False


@pytest.mark.parametrize("file", [file for file in FILES if not is_of_a_kind(file)])
def test_every_test_file_has_a_module(file: str) -> None:
    room = mirrored_room(file).relative_to(REPOSITORY)
    assert names_a_module(file), (
        f"tests/{file}: no module of this name in {room}; rename the file after the"
        " module that it tests, or give its kind in test_mirror.py with a reason"
    )


@pytest.mark.parametrize("pattern", KINDS)
def test_every_kind_is_needed(pattern: str) -> None:
    files = [file for file in FILES if fits(file, pattern)]
    assert files, f"{pattern}: no file is of this kind; take it out of the list"


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("mamba2/test_ssd.py", True),
        ("test_scanner_prepare.py", True),
        ("lab/benchmarks/test_main.py", True),
        ("integrations/llama_index/test_retrievers_corpus.py", True),
        ("integrations/langchain/test_retrievers.py", False),
        ("mamba2/test_scanner.py", False),
        ("lab/evaluation/test_ssd.py", False),
        ("results/test_everything.py", False),
    ],
)
def test_what_counts_as_a_module(file: str, expected: bool) -> None:
    assert names_a_module(file) == expected
