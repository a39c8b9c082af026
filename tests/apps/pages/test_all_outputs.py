"""Hostile names and texts from files have no effect in the output of any writer."""

import csv
import io
import json
import re
import sys
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from spscanner_lab.commands.train import TrainingView
from spscanner_lab.evaluation.records import Record
from spscanner_lab.evaluation.result import EvaluationResult
from spscanner_lab.evaluation.rows import differences_of, rows_of
from spscanner_lab.evaluation.tables import Table
from spscanner_lab.training.loop import StepReport
from spscanner_lab.training.model_card import MODEL_CARD, write_model_card
from spscanner_lab.training.stages.evidence import Validation
from spscanner_lab.views.evaluation_files import write_result
from spscanner_lab.views.evaluation_terminal import show_result
from spscanner_rag.apps.pages.scanned_document import (
    ScannedDocument,
    described,
    select_together,
    to_csv,
    to_markdown,
)
from spscanner_rag.apps.pages.terminal import print_facts, render_documents
from spscanner_rag.baselines.settings import Setting
from spscanner_rag.checkpoint import ScannerSettings
from spscanner_rag.files.documents import TextFile
from spscanner_rag.results import ScanResult, Selection
from spscanner_rag.scanner import Scanner
from spscanner_rag.system.strict_json import json_text
from tests.apps.pages.checked_page import INVISIBLE, check_page

HOSTILE = [
    "one\ntwo\r\n## three\r| four |",
    "<img src=x onerror=alert(1)><script>alert(2)</script>",
    "\x1b]0;title\x07\x1b[31mred\x9b2J",
    "a\u202eevil\u2066b\u200bc\u00add\u034fe\u3164f\U000e0100g",
    '=HYPERLINK("http://x","y")',
    "@SUM(1)",
    "+1+1",
    "-2+3",
    "\t=1",
    "\r=2",
    "[/bold] [red]x[/] [link=http://x]y[/link] :smile:",
    "[link](javascript:alert(1)) ![image](http://x/y.png) `code",
    "\ud800 lone",
]


def results(name: str) -> EvaluationResult:
    settings = [Setting(f"scanner:{name}", "sentence"), Setting(name, "sentence")]
    of_all = (name, name, name, "q", 90, {"recall@10": 0.5, "mrr": 0.5, "tokens@5": 9})
    records = [Record(*setting.key, *of_all) for setting in settings]
    table = Table(name, f"About {name}.", ["source", name], [[name, name]])
    differences = differences_of(records, [(settings[0], settings[1])])
    return EvaluationResult(
        rows_of(records, settings), differences, settings, tables=[table]
    )


def check_plain(text: str, name: str) -> None:
    """Check a text for a terminal or a Markdown file.

    Nothing is invisible, and no line begins within a name.
    """
    assert not INVISIBLE.search(text)
    if name == HOSTILE[0]:
        assert not re.search(r"^(two|## three|\| four)", text, re.MULTILINE)


def check_cells(cells: Iterable[str]) -> None:
    """Cells that no spreadsheet evaluates."""
    for cell in cells:
        assert not INVISIBLE.search(cell)
        assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
        assert "\n" not in cell


def check_markdown(text: str, name: str) -> None:
    check_plain(text, name)
    assert "<img" not in text
    assert "<script" not in text
    assert not re.search(r"(?<!\\)\]\((javascript|http)", text)
    tables = [line for line in text.splitlines() if line.startswith("| ")]
    for line, rule in pairwise(tables):
        if rule.startswith("| ---"):  # as many cells as the header
            assert len(re.findall(r"(?<!\\)\|", line)) == len(re.findall(r"\|", rule))


@pytest.mark.parametrize("name", HOSTILE)
def test_evaluation(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    show_result(results(name), Path("out") / name)
    check_plain(capsys.readouterr().out, name)
    write_result(results(name), tmp_path, {name: name})
    check_markdown((tmp_path / "results.md").read_text(encoding="utf-8"), name)
    check_page((tmp_path / "results.html").read_text(encoding="utf-8"))
    for file in ("results.json", "differences.json"):
        assert (tmp_path / file).read_bytes().isascii()


@pytest.mark.parametrize("name", HOSTILE)
def test_terminal_of_training(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    view = TrainingView(1000, enabled=True)
    with view.bar:
        view.preparing(f"reading {name}")
        view.step(StepReport(20, 0.5, 1.25, 1e-3, 8192, 2710.4))
        view.validated(20, Validation(0.5, {}, (f"recall  @1  50.0  {name}",)))
    shown = capsys.readouterr().err
    check_plain(shown, name)
    assert len(shown.splitlines()) == 3
    if "[/bold]" in name:
        assert name in shown


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("stage", ["evidence", "reranker"])
def test_model_card(
    name: str, stage: str, tiny_scanner: Scanner, tmp_path: Path
) -> None:
    folder = tmp_path / re.sub(r"[/\0\ud800]", "", name).strip()
    folder.mkdir()
    measured = "validation_recall" if stage == "evidence" else "validation_ranking"
    training = {
        "stage": stage,
        "steps": 3,
        "hours": 0.1,
        "hardware": name,
        "started_from": name,
        "left_out": 1,
        "recipe": {"stage": name, name: [name]},
        "questions_by_source": {name: 3},
        measured: {name: {"@1": 0.5}},
    }
    settings: ScannerSettings = replace(
        tiny_scanner.checkpoint.settings, training=training
    )
    write_model_card(folder, tiny_scanner.checkpoint.model, settings)
    card = (folder / MODEL_CARD).read_text(encoding="utf-8")
    title, usage, rest = re.split("```(?:python|sh)?\n", card)
    check_plain(card, name)
    assert usage.count("\n") in (1, 3)
    check_markdown(
        title + re.sub("(`+)(?!`).*?(?<!`)\\1(?!`)", "", rest), name
    )  # in code, no markup has an effect


def scanned(name: str) -> ScannedDocument:
    text = f"A sentence {name} ends. Another."
    result = ScanResult(
        "?",
        text,
        [0, len(text) - 8],
        [len(text) - 9, len(text)],
        [0.5, -1.0],
        count_tokens=len,
    )  # type: ignore[arg-type]
    return select_together(
        [TextFile(name, text)], [result], Selection(top_k=2, order="score")
    )[0]


@pytest.mark.parametrize("name", HOSTILE)
def test_terminals(
    name: str, terminal: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    for stream in (io.StringIO(), terminal):
        shown = re.sub(r"\x1b\[[\d;]*m", "", render_documents([scanned(name)], stream))
        check_plain(shown, "" if stream is terminal else name)
    print_facts("Facts", [(name, name)], sys.stdout)
    shown = capsys.readouterr().out
    check_plain(shown, name)
    assert len(shown.splitlines()) == 2
    if "[/bold]" in name:
        assert shown.count(name) == 2


@pytest.mark.parametrize("name", HOSTILE)
def test_lists(name: str) -> None:
    check_markdown(to_markdown(name, [scanned(name)]), name)
    for row in csv.DictReader(io.StringIO(to_csv([scanned(name)]))):
        check_cells((row["path"], row["text"]))
    written = json_text(described(name, name, [scanned(name)]))
    assert written.isascii()
    assert json.loads(written)["query"] == name
