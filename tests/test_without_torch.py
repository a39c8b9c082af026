"""Where torch is not installed, the bundled checkpoint answers the same with numpy."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from spscanner_rag.scanner import Scanner
from tests.conftest import SMALL_TEXT

QUERY = "Who signed the treaty?"
LONG_TEXT = SMALL_TEXT * 8  # enough sentences for the sentence scan

WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None  # `find_spec` then finds nothing, and imports fail
"""


def run(code: str, *arguments: str, folder: Path | None = None) -> str:
    """Run code in an interpreter that has no torch, and return what it prints."""
    command = [sys.executable, "-c", WITHOUT_TORCH + code, *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=240, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def a_message(*arguments: str, folder: Path) -> str:
    """The one line with which the command line refuses arguments."""
    code = "from spscanner_rag.apps.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", WITHOUT_TORCH + code, *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=240, cwd=folder
    )
    assert done.returncode == 2, done.stdout + done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def in_torch() -> Scanner:
    return Scanner.from_pretrained(device="cpu", dtype="float32", backend="torch")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "long.txt").write_text(LONG_TEXT, encoding="utf-8")
    return tmp_path


@pytest.mark.slow
def test_scans_and_ranks_are_those_of_torch(in_torch: Scanner, folder: Path) -> None:
    code = """
import json
from pathlib import Path
from spscanner_rag import Scanner
query, small = sys.argv[1:]
long = Path("long.txt").read_text(encoding="utf-8")
scanner = Scanner.from_pretrained()
results = [scanner.scan(query, text, read=read) for text, read in
           [(small, "auto"), (long, "auto"), (long, 0), (long, 0.3)]]
ranked = scanner.rank(query, ["Rain fell.", "Ann signed the treaty in May."])
print(json.dumps({
    "logits": [result.logits.tolist() for result in results],
    "best": ranked[0].text,
    "backend": scanner.backend,
    "torch": str(sys.modules["torch"]),
}))
"""
    printed = json.loads(run(code, QUERY, SMALL_TEXT, folder=folder))
    assert printed["best"] == "Ann signed the treaty in May."
    assert (printed["backend"], printed["torch"]) == ("numpy", "None")
    asked: list[tuple[str, object]] = [(SMALL_TEXT, "auto")]
    asked += [(LONG_TEXT, "auto"), (LONG_TEXT, 0), (LONG_TEXT, 0.3)]
    for (text, read), logits in zip(asked, printed["logits"], strict=True):
        expected = in_torch.scan(QUERY, text, read=read).logits  # type: ignore[arg-type]
        assert np.array(logits) == pytest.approx(expected, abs=2e-3)
        assert np.argmax(logits) == np.argmax(expected)


@pytest.mark.slow
def test_frameworks_find_the_sentence() -> None:
    code = """
from langchain_core.documents import Document
from langchain_spscanner import SPScannerRetriever
documents = [Document(page_content="Rain fell. Ann signed the treaty in May.")]
retriever = SPScannerRetriever.from_documents(documents)
print(retriever.invoke("Who signed?")[0].page_content)
from llama_index.core import Document
from llama_index.retrievers.spscanner import SPScannerRetriever
documents = [Document(text="Rain fell. Ann signed the treaty in May.")]
print(SPScannerRetriever.from_documents(documents).retrieve("Who signed?")[0].text)
assert sys.modules["torch"] is None
"""
    pytest.importorskip("langchain_core")
    pytest.importorskip("llama_index.core")
    assert run(code) == "Ann signed the treaty in May.\n" * 2


@pytest.mark.slow
def test_the_command_line_answers(in_torch: Scanner, folder: Path) -> None:
    code = "from spscanner_rag.apps.cli import main; main(sys.argv[1:])"
    arguments = ("scan", "-q", QUERY, "long.txt", "--format", "json", "--top-k", "1")
    printed = run(code, *arguments, folder=folder)
    best = in_torch.scan(QUERY, LONG_TEXT).select(1)[0].text
    assert json.dumps(best, ensure_ascii=False) in printed
    facts = run(code, "info", folder=folder)
    assert "backend  numpy (torch is not installed)" in facts


@pytest.mark.slow
def test_retrievers_are_evaluated(folder: Path) -> None:
    end = SMALL_TEXT.index(".") + 1
    question = {"qid": "1", "question": QUERY, "evidence": [[0, end]]}
    document = {"doc_id": "1", "source": "small", "text": SMALL_TEXT}
    questions = json.dumps({**document, "questions": [question]})
    (folder / "questions.jsonl").write_text(questions, encoding="utf-8")
    code = "from spscanner_rag.apps.cli import main; sys.exit(main(sys.argv[1:]))"
    arguments = ("eval", "questions.jsonl", "--retrievers", "scanner,bm25")
    printed = run(code, *arguments, "--out", "results", folder=folder)
    assert "bm25" in printed
    assert (folder / "results").is_dir()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "got"),
    [
        (("scan", "-q", QUERY, "long.txt", "--device", "cuda"), "the device 'cuda'"),
        (("compare", "-q", QUERY, "long.txt", "--retrievers", "mamba:x"), "MambaRer"),
        (("train", "--data", "long.txt", "--out", "trained"), "this command"),
    ],
)
def test_what_needs_torch_is_refused_with_the_line_that_installs_it(
    folder: Path, arguments: tuple[str, ...], got: str
) -> None:
    message = a_message(*arguments, folder=folder)
    assert got in message
    assert "which needs torch; expected what numpy computes" in message
    assert 'pip install "torch' in message
    assert message.count("\n") == 1


@pytest.mark.slow
def test_a_published_checkpoint_is_refused(
    folder: Path, published_checkpoint: Path
) -> None:
    arguments = ("scan", "-q", QUERY, "long.txt", "--model", str(published_checkpoint))
    message = a_message(*arguments, folder=folder)
    assert f"got the checkpoint '{published_checkpoint}', which needs torch" in message


def test_numpy_leaves_torch_unimported() -> None:
    code = """
import sys
from spscanner_rag import Scanner
scanner = Scanner.from_pretrained(backend="numpy")
print(len(scanner.scan("Who signed?", "Ann signed. It rained.").sentences))
print("torch" in sys.modules)
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout == "2\nFalse\n", done.stderr
