"""The script that trains a propositionizer makes a folder that works as a retriever."""

import json
import re
import runpy
import sys
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from spscanner_rag.baselines.proposition_model import SEQ2SEQ_INPUT, Seq2Seq
from spscanner_rag.baselines.proposition_replies import Source, read_reply
from tests.baselines.conftest import save_t5

pytest.importorskip("transformers")
SCRIPT = Path(__file__).parents[2] / "examples" / "training" / "propositionizer.py"
SOURCES = [Source("Sea", "It ran; it was May."), Source("", "Ann left.")]
PROPOSITIONS = [["It ran.", "It was May."], ["Ann left."]]
LINES = [
    {"sources": SEQ2SEQ_INPUT.format(**source._asdict()), "targets": json.dumps(own)}
    for source, own in zip(SOURCES, PROPOSITIONS, strict=True)
]


@pytest.fixture
def base(tiny_tokenizer: Tokenizer, tmp_path: Path) -> Path:
    """A random T5, large enough to learn two passages by heart."""
    sizes = {"d_model": 32, "d_kv": 16, "d_ff": 64, "dropout_rate": 0.0}
    return save_t5(tmp_path / "base", tiny_tokenizer, **sizes)


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr(
        sys, "argv", [str(SCRIPT), *map(str, arguments), "--device", "cpu"]
    )
    runpy.run_path(str(SCRIPT), run_name="__main__")


@pytest.mark.slow
def test_it_learns_to_write_propositions(
    base: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = tmp_path / "train.jsonl"
    # a list is accepted as well as its JSON
    listed = LINES[1] | {"targets": PROPOSITIONS[1]}
    data.write_text(
        "".join(json.dumps(line) + "\n" for line in (LINES[0], listed)) * 60
    )
    options = [
        "--epochs",
        3,
        "--batch",
        2,
        "--learning-rate",
        0.01,
        "--validation",
        data,
    ]
    run(
        monkeypatch, "--base", base, "--data", data, "--out", tmp_path / "out", *options
    )
    told = capsys.readouterr().err
    assert "120 examples; 0 of more than 512 tokens" in told
    first, *_, last = map(float, re.findall(r"validation ([\d.]+)", told))
    assert last < first < 1
    replies = list(Seq2Seq(tmp_path / "out", device="cpu")(SOURCES))
    assert [read_reply(reply) for reply in replies] == [
        tuple(own) for own in PROPOSITIONS
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            {"sources": "Title: . Section: . Content: x", "targets": "no list"},
            "line 1: expected",
        ),
        (
            {"sources": "Title: . Section: . Content: x", "targets": '[["nested"]]'},
            "line 1: expected",
        ),
        ({"source": "x", "targets": "[]"}, "line 1: expected an object with strings"),
        ({"sources": "long " * 600, "targets": "[]"}, "got no example"),
    ],
)
def test_what_is_no_example_is_refused(
    line: dict[str, str],
    message: str,
    base: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "bad.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(SystemExit, match=message):
        run(
            monkeypatch,
            "--base",
            base,
            "--data",
            tmp_path / "bad.jsonl",
            "--out",
            tmp_path / "out",
        )
