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


def timeqa(folder: Path) -> Path:
    paras = ["Lock House", "It ( no . 3 ) was sold by A . Lock , Jr . in 1911 .", "- 1912 - B . Weir"]
    answers = [
        {"para": 1, "from": 26, "end": 40, "answer": "A . Lock , Jr ."},
        {"para": 2, "from": 9, "end": 17, "answer": "B . Weir"},
    ]
    assert paras[1][26:41] == answers[0]["answer"]
    answers[0]["end"] = 41
    questions = [["Who owned it?", answers], ["Who built it?", []]]
    record = {"index": "/wiki/L#P1", "link": "/wiki/L", "questions": questions, "paras": paras}
    other = record | {"index": "/wiki/L#P2", "questions": [["Whose was it?", answers[1:]]]}
    (folder / "t.json").write_text(json.dumps([record, other]))
    return folder / "t.json"


def fairytaleqa(folder: Path) -> Path:
    files = {
        "questions/val/fox-questions.csv": "question_id,cor_section,question,"
        + ",".join(f"answer{n}" for n in range(1, 7))
        + '\n1,2,Who ran?,the fox,,,"a fox, of course",,\n2,"1,2",Who met?,,,,,,\n',
        "section-stories/val/fox-story.csv": 'section,text\n1,"A hen said: ""No!"""\n2,The fox ran.\n',
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text(content)
    return folder / "questions" / "val"


def evidence_inference(folder: Path) -> Path:
    text = "TITLE: \nA trial\n\nPain fell. Sleep did not change."
    row = "0,{},7,{},{},significantly decreased,{},-1,UNK,{},{}\n"
    head = "UserID,PromptID,PMCID,Valid Label,Valid Reasoning,Label,Annotations,Label Code,In Abstract"
    files = {
        "prompts_merged.csv": "PromptID,PMCID,Outcome,Intervention,Comparator\n1,7,pain,A,B \n2,7,sleep,A,B\n",
        "v2_annotations.csv": f"{head},Evidence Start,Evidence End\n"
        + row.format(1, "True", "True", '"Pain fell.\n"', 17, 28)
        + row.format(1, "True", "True", "Pain fell.", 17, 27)
        + row.format(2, "True", "False", "Sleep did not change.", 28, 49)
        + row.format(2, "True", "True", "Sleep did not change.", -1, -1),
        "txt_files/PMC7.txt": text,
        "splits/validation_article_ids.txt": "7\n",
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)
    return folder / "splits" / "validation_article_ids.txt"


def quotesum(folder: Path) -> Path:
    passages = {"title1": "Otter", "source1": "An Otter swims.", "title2": "Heron", "source2": "It flies."}
    empty = {f"{kind}{n}": "" for kind in ("title", "source") for n in range(3, 9)}
    summaries = ["An [ 1 Otter ] swims, and [ 2 flies ] .", "[ 2 It flies. ] [ 1 not there ]"]
    rows = [{"qid": "q", "question": "Who?", "summary": each, **passages, **empty} for each in summaries]
    (folder / "dev.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder / "dev.jsonl"


def tatqa(folder: Path) -> Path:
    notes = [{"order": 2, "text": "Sales rose."}, {"order": 1, "text": "In millions:"}]
    mapping = {"table": [[1, 1]], "paragraph": {"2": [[0, 5]]}}
    record = {
        "table": {"uid": "u", "table": [["", "2019"], ["Sales", "44"]]},
        "paragraphs": notes,
        "questions": [{"uid": "q", "question": "What rose?", "mapping": mapping}],
    }
    (folder / "t.json").write_text(json.dumps([record]))
    return folder / "t.json"


def medquad(folder: Path) -> Path:
    pair = '<QAPair pid="{}"><Question>{}</Question><Answer>{}</Answer></QAPair>'
    pairs = pair.format(1, " What is it? ", "A  cold.\n\n   It   passes.") + pair.format(2, "Why?", "")
    page = f"<Document id='7'><Focus>Cold</Focus><QAPairs>{pairs}</QAPairs></Document>"
    (folder / "1_X_QA").mkdir()
    (folder / "1_X_QA" / "07_1.xml").write_text(page)
    return folder


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
        (
            timeqa,
            "Lock House\n\nIt (no. 3) was sold by A. Lock, Jr. in 1911.\n\n- 1912 - B. Weir",
            {"/wiki/L#P1#0": ["A. Lock, Jr.", "B. Weir"], "/wiki/L#P1#1": [], "/wiki/L#P2#0": ["B. Weir"]},
        ),
        (
            fairytaleqa,
            'A hen said: "No!"\n\nThe fox ran.',
            {"fox#0": ["The fox ran."], "fox#1": ['A hen said: "No!"', "The fox ran."]},
        ),
        (evidence_inference, "TITLE: \nA trial\n\nPain fell. Sleep did not change.", {"1": ["Pain fell."]}),
        (quotesum, "Otter\nAn Otter swims.\n\nHeron\nIt flies.", {"q": ["Otter", "It flies.", "flies"]}),
        (tatqa, "In millions:\n\nSales rose.\n\n | 2019\nSales | 44", {"q": ["Sales", "44"]}),
        (medquad, "Cold\n\nA cold.\nIt passes.", {"7#1": ["A cold.\nIt passes."]}),
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
    assert {qid: sorted(each) for qid, each in found.items()} == {
        qid: sorted(each) for qid, each in quoted.items()
    }
    assert all(each.answerable is bool(each.evidence) for each in document.questions)
    lines = [json.loads(each) for each in out.read_text().splitlines()]
    digest = convert.digest_of(lines)
    assert f"digest {digest}" in capsys.readouterr().out
    lines[0]["questions"][0] |= {"evidence": [[0, 1]]}
    assert convert.digest_of(lines) != digest
