"""What tests of commands share: the program, a small checkpoint, a document."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from tokenizers import Tokenizer

from spscanner_rag.apps.cli import main
from spscanner_rag.checkpoint import ScannerSettings, save_checkpoint
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.model import ScannerModel


class Output(NamedTuple):
    code: int
    out: str
    err: str

    def refuses(self, message: str) -> None:
        """Assert a line with a message on standard error, and exit code 2."""
        assert (self.code, self.out, self.err.count("\n"), self.err[-1]) == (
            2,
            "",
            1,
            "\n",
        )
        assert self.err.startswith("spscanner: ")
        assert message in self.err


Run = Callable[..., Output]


def write_lines(path: Path, *values: object) -> Path:
    """Write a file of JSON lines."""
    path.write_text(
        "".join(json.dumps(value) + "\n" for value in values), encoding="utf-8"
    )
    return path


def read_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the program with these arguments."""

    def run(*arguments: object) -> Output:
        code = main([str(argument) for argument in arguments])
        return Output(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="module")
def checkpoint(
    tmp_path_factory: pytest.TempPathFactory, tiny_tokenizer: Tokenizer
) -> Path:
    """A model with random weights that mostly follows the lexical prior."""
    torch.manual_seed(0)
    config = Mamba2Config(d_model=16, n_layer=1, vocab_size=384, d_state=8, headdim=8)
    model = ScannerModel(config, lexical_prior=True)
    with torch.no_grad():
        assert model.lexical_prior is not None
        model.lexical_prior.weight.fill_(3.0)
    settings = ScannerSettings(
        segmenter="sentence",
        window_tokens=None,
        reanchor_tokens=64,
        match=False,
        prior=True,
        training={
            "sources": ["stories", "contracts"],
            "validation": {"recall@10": 0.25},
            "[red]": "\x1b[31m",
        },
    )
    folder = tmp_path_factory.mktemp("checkpoints") / "tiny"
    save_checkpoint(folder, model, settings, tiny_tokenizer)
    return folder


@pytest.fixture
def document(tmp_path: Path) -> Path:
    """A document in a separate folder."""
    return Path(
        shutil.copy(
            Path(__file__).parent / "data" / "documents" / "treaty.txt", tmp_path
        )
    )


@pytest.fixture
def scan(run: Run, checkpoint: Path) -> Run:
    """Runs `spscanner scan` with the checkpoint and these arguments."""

    def scan(*arguments: object) -> Output:
        return run(
            "scan",
            "-q",
            "Who signed the treaty?",
            "--model",
            checkpoint,
            "--dtype",
            "float32",
            *arguments,
        )

    return scan
