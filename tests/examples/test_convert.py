"""Public question files become question files of this package."""

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from spscanner_rag.lab.evidence.questions import read_documents
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


def qmsum(folder: Path) -> Path:
    turns = [{"speaker": "Ada", "content": "Hello."}, {"speaker": "Bo", "content": "It rains."}]
    asked = {"relevant_text_span": [["1", "1"]]}
    content = {
        "meeting_transcripts": turns,
        "specific_query_list": [{"query": "What falls?", "answer": "rain"} | asked],
        "topic_list": [{"topic": "Weather"} | asked],
    }
    (folder / "m1.json").write_text(json.dumps(content))
    return folder


def hotpotqa(folder: Path) -> Path:
    context = [["Otter", ["It swims.", " It eats fish."]], ["Heron", ["It flies."]]]
    facts = [["Heron", 0], ["Otter", 1], ["Otter", 9]]
    record = {
        "_id": "h",
        "question": "Who?",
        "answer": "otter",
        "context": context,
        "supporting_facts": facts,
    }
    (folder / "dev.json").write_text(json.dumps([record]))
    return folder / "dev.json"


def limit(folder: Path) -> Path:
    files: dict[str, list[dict[str, Any]]] = {
        "corpus": [{"_id": "Ada", "text": "Ada likes tea."}, {"_id": "Bo", "text": "Bo likes figs and tea."}],
        "queries": [{"_id": "q", "text": "Who likes figs?"}],
        "qrels": [
            {"query-id": "q", "corpus-id": "Bo", "score": 1},
            {"query-id": "q", "corpus-id": "Ada", "score": 0},
        ],
    }
    for name, lines in files.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    return folder


def squad(folder: Path) -> Path:
    answers = [{"text": "1911", "answer_start": 3}, {"text": "in 1911", "answer_start": 0}]
    asked = [
        {"id": "a", "question": " When? ", "answers": answers},
        {"id": "b", "question": "Who?", "answers": []},
    ]
    paragraphs = [{"context": "It rained.", "qas": []}, {"context": "In 1911 it froze.", "qas": asked}]
    (folder / "s.json").write_text(json.dumps({"data": [{"title": "T", "paragraphs": paragraphs}]}))
    return folder / "s.json"


@pytest.mark.parametrize(
    ("raw", "text", "quoted"),
    [
        (qmsum, "Ada: Hello.\nBo: It rains.", {"m1#s0": ["Bo: It rains."], "m1#t0": ["Bo: It rains."]}),
        (
            hotpotqa,
            "Otter\nIt swims. It eats fish.\n\nHeron\nIt flies.",
            {"h": ["It eats fish.", "It flies."]},
        ),
        (limit, "Ada likes tea.\n\nBo likes figs and tea.", {"q": ["Bo likes figs and tea."]}),
        (squad, "It rained.\n\nIn 1911 it froze.", {"a": ["1911"], "b": []}),
    ],
)
def test_texts_and_evidence(
    raw: Callable[[Path], Path],
    text: str,
    quoted: dict[str, list[str]],
    convert: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out.jsonl"
    monkeypatch.setattr(sys, "argv", ["convert.py", raw.__name__, str(raw(tmp_path)), "--out", str(out)])
    convert.main()
    (document,) = read_documents([out], distinct=True)
    assert document.text == text
    found = {each.qid: [text[slice(*span)] for span in each.evidence] for each in document.questions}
    assert found == quoted
    assert all(each.answerable is bool(each.evidence) for each in document.questions)
    lines = [json.loads(each) for each in out.read_text().splitlines()]
    digest = convert.digest_of(lines)
    assert f"digest {digest}" in capsys.readouterr().out
    lines[0]["questions"][0] |= {"evidence": [[0, 1]]}
    assert convert.digest_of(lines) != digest
