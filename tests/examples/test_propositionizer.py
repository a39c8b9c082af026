"""The script that trains a propositionizer learns the authors' layout, and its folder is a retriever."""

import json
import re
import runpy
import sys
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer

from spscanner_rag.baselines.propositions import SEQ2SEQ_INPUT, Seq2Seq, Source, read_reply

transformers = pytest.importorskip("transformers")
SCRIPT = Path(__file__).parents[2] / "examples" / "training" / "propositionizer.py"
SOURCES = [Source("Sea", "It ran; it was May."), Source("", "Ann left.")]
PROPOSITIONS = [["It ran.", "It was May."], ["Ann left."]]
LINES = [
    {"sources": SEQ2SEQ_INPUT.format(**source._asdict()), "targets": json.dumps(own)}
    for source, own in zip(SOURCES, PROPOSITIONS, strict=True)
]


@pytest.fixture
def base(tiny_tokenizer: Tokenizer, tmp_path: Path) -> Path:
    """A random T5 that is large enough to learn two passages by heart."""
    tokenizer = Tokenizer.from_str(tiny_tokenizer.to_str())
    tokenizer.add_special_tokens(["<pad>", "</s>"])
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>"
    )
    fast.save_pretrained(tmp_path / "base")
    pad, end = map(tokenizer.token_to_id, ("<pad>", "</s>"))
    config = transformers.T5Config(
        vocab_size=tokenizer.get_vocab_size(), d_model=32, d_kv=16, d_ff=64, num_layers=1, num_heads=2,
        pad_token_id=pad, eos_token_id=end, decoder_start_token_id=pad, dropout_rate=0.0,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        transformers.T5ForConditionalGeneration(config).save_pretrained(tmp_path / "base")
    return tmp_path / "base"


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *map(str, arguments), "--device", "cpu"])
    runpy.run_path(str(SCRIPT), run_name="__main__")


@pytest.mark.slow
def test_it_learns_to_write_propositions(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "train.jsonl"
    listed = LINES[1] | {"targets": PROPOSITIONS[1]}  # a list is taken as well as its JSON
    data.write_text("".join(json.dumps(line) + "\n" for line in (LINES[0], listed)) * 60)
    options = ["--epochs", 3, "--batch", 2, "--learning-rate", 0.01, "--validation", data]
    run(monkeypatch, "--base", base, "--data", data, "--out", tmp_path / "out", *options)
    told = capsys.readouterr().err
    assert "120 examples; 0 of more than 512 tokens" in told
    first, *_, last = map(float, re.findall(r"validation ([\d.]+)", told))
    assert last < first < 1
    replies = list(Seq2Seq(tmp_path / "out", device="cpu")(SOURCES))
    assert [read_reply(reply) for reply in replies] == [(tuple(own), True) for own in PROPOSITIONS]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"sources": "Title: . Section: . Content: x", "targets": "no list"}, "line 1: expected"),
        ({"sources": "Title: . Section: . Content: x", "targets": '[["nested"]]'}, "line 1: expected"),
        ({"source": "x", "targets": "[]"}, "line 1: expected an object with strings"),
        ({"sources": "long " * 600, "targets": "[]"}, "got no example"),
    ],
)
def test_what_is_no_example_is_refused(
    line: dict[str, str], message: str, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(SystemExit, match=message):
        run(monkeypatch, "--base", base, "--data", tmp_path / "bad.jsonl", "--out", tmp_path / "out")
