"""Public question files become question files of this package."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from spscanner_lab.evidence.questions import read_documents
from tests.conftest import REPOSITORY


@pytest.fixture(scope="module")
def convert() -> ModuleType:
    path = REPOSITORY / "examples" / "data" / "convert.py"
    spec = importlib.util.spec_from_file_location("convert", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SOURCES = REPOSITORY / "tests" / "data" / "sources"
"""A small example of each source, in that source's layout."""


@pytest.mark.parametrize(
    ("name", "path", "text", "quoted"),
    [
        (
            "qmsum",
            "",
            "Ada: Hello.\nBo: It rains.",
            {"m1#s0": ["Bo: It rains."], "m1#t0": ["Bo: It rains."]},
        ),
        (
            "hotpotqa",
            "dev.json",
            "Otter\nIt swims. It eats fish.\n\nHeron\nIt flies.",
            {"h": ["It eats fish.", "It flies."]},
        ),
        (
            "limit",
            "",
            "Ada likes tea.\n\nBo likes figs and tea.",
            {"q": ["Bo likes figs and tea."]},
        ),
        (
            "squad",
            "s.json",
            "It rained.\n\nIn 1911 it froze.",
            {"a": ["1911"], "b": []},
        ),
        (
            "timeqa",
            "t.json",
            (
                "Lock House\n\nIt (no. 3) was sold by A. Lock, Jr. in 1911.\n\n- 1912 -"
                " B. Weir"
            ),
            {
                "/wiki/L#P1#0": ["A. Lock, Jr.", "B. Weir"],
                "/wiki/L#P1#1": [],
                "/wiki/L#P2#0": ["B. Weir"],
            },
        ),
        (
            "fairytaleqa",
            "questions/val",
            'A hen said: "No!"\n\nThe fox ran.',
            {"fox#0": ["The fox ran."], "fox#1": ['A hen said: "No!"', "The fox ran."]},
        ),
        (
            "evidence_inference",
            "splits/validation_article_ids.txt",
            "TITLE: \nA trial\n\nPain fell. Sleep did not change.",
            {"1": ["Pain fell."]},
        ),
        (
            "quotesum",
            "dev.jsonl",
            "Otter\nAn Otter swims.\n\nHeron\nIt flies.",
            {"q": ["Otter", "It flies.", "flies"]},
        ),
        (
            "tatqa",
            "t.json",
            "In millions:\n\nSales rose.\n\n | 2019\nSales | 44",
            {"q": ["Sales", "44"]},
        ),
        (
            "medquad",
            "",
            "Cold\n\nA cold.\nIt passes.",
            {"7#1": ["A cold.\nIt passes."]},
        ),
    ],
)
def test_texts_and_evidence(
    name: str,
    path: str,
    text: str,
    quoted: dict[str, list[str]],
    convert: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out.jsonl"
    given = str(SOURCES / name / path)
    monkeypatch.setattr(sys, "argv", ["convert.py", name, given, "--out", str(out)])
    convert.main()
    (document,) = read_documents([out], distinct=True)
    assert document.text == text
    found = {
        each.qid: [text[slice(*span)] for span in each.evidence]
        for each in document.questions
    }
    assert found == quoted
    assert all(each.answerable is bool(each.evidence) for each in document.questions)
    lines = [json.loads(each) for each in out.read_text().splitlines()]
    digest = convert.digest_of(lines)
    assert f"digest {digest}" in capsys.readouterr().out
    lines[0]["questions"][0] |= {"evidence": [[0, 1]]}
    assert convert.digest_of(lines) != digest


def test_every_format_has_an_example(convert: ModuleType) -> None:
    assert set(convert.FORMATS) == {folder.name for folder in SOURCES.iterdir()}
