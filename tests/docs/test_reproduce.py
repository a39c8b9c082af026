"""The commands of docs/reproduce.md for the scanner's paper, on small stand-ins.

The stand-ins have the published formats: folders of a random model in mamba-ssm's
layout, `mambaretriever_test.json` with 41 benchmarks, the file of categories, embedding
models of sentence-transformers, and a language model that follows a script. The names
of the nine benchmarks of multiple choice are the published ones; the others stand for
any, since nothing depends on them.
"""

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from spscanner_lab.evaluation.rows import LENGTH_EDGES, length_name
from spscanner_lab.synthesis.released_tests import MULTIPLE_CHOICE
from tests.command_line import Run, read_lines, run
from tests.docs.blocks import REPOSITORY, blocks_of
from tests.docs.commands import commands

__all__ = ["run"]

PAGE = REPOSITORY / "docs" / "reproduce.md"
SECTION = "## Single-Pass Scanner (COLM 2025)"

BENCHMARKS = sorted(MULTIPLE_CHOICE) + [f"benchmark_{number}" for number in range(32)]
CATEGORIES = ("educational", "creative", "official", "conversational")
WITHOUT_CATEGORY = "benchmark_31"
TOKENS = [edge + 500 for edge in LENGTH_EDGES]  # of the first benchmarks
SENTENCES = 70  # more than the 50 that an answer is given from

SCRIPT = '''
import re


def reply(prompt):
    """Tells the signal of the house that is asked about, if the text has it."""
    section = r"\\[BEGIN ([A-Z ]+) \\w+\\]\\n(.*?)\\n\\[END"
    sections = dict(re.findall(section, prompt, re.S))
    if "CANDIDATE ANSWER" in sections:
        right = sections["REFERENCE ANSWER"] in sections["CANDIDATE ANSWER"]
        return f"REASON: compared.\\nDECISION: {'YES' if right else 'NO'}"
    house = sections["QUESTION"].split()[-1].rstrip("?")
    found = re.search(rf"signal of {house} is (\\w+)", sections["TEXT"])
    return f"REASON: read.\\nANSWER: {found[1] if found else 'unknown'}"
'''


def letters(number: int) -> str:
    """A number in letters, since words are made of these."""
    return "".join(chr(ord("a") + int(digit)) for digit in f"{number:03}")


def record(number: int, place: int, sentences: list[str]) -> dict[str, Any]:
    """A released record: the question of a house, with the tokens of its text."""
    tokens = TOKENS[number] if number < len(TOKENS) else TOKENS[0]
    return {
        "question": f"Which signal belongs to house{letters(2 * number + place)}?",
        "answer": [f"quill{letters(2 * number + place)}"],
        "answer_type": "sentence",
        "full_text_sentences": sentences,
        "input_ids": [7] * tokens,
        "sentence_indices": [1] * len(sentences),
    }


def released() -> dict[str, dict[str, Any]]:
    """Two questions of each benchmark, on one text."""
    content: dict[str, dict[str, Any]] = {}
    for number, name in enumerate(BENCHMARKS):
        sentences = []
        for line in range(SENTENCES):
            sentences.append(f"On day {line} the keeper of tower {number} saw ships. ")
        for place, line in ((0, 20), (1, 60)):
            house = letters(2 * number + place)
            sentences[line] = f"The signal of house{house} is quill{house}, all said. "
        content[name] = {}
        for place in range(2):
            content[name][f"{name}-{place}"] = record(number, place, sentences)
    return content


@pytest.fixture
def stand_ins(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    published_checkpoint: Path,
    bert_folder: Path,
) -> dict[str, str]:
    """Write the files of the page into the current folder; what replaces its names."""
    monkeypatch.chdir(tmp_path)
    content = released()
    Path("mambaretriever_test.json").write_text(json.dumps(content))
    by_category: dict[str, dict[str, Any]] = {}
    for number, (name, records) in enumerate(content.items()):
        if name != WITHOUT_CATEGORY:
            category = CATEGORIES[number % len(CATEGORIES)]
            by_category.setdefault(category, {})[name] = records
    categories = Path("mambaretriever_test_per_category.json")
    categories.write_text(json.dumps(by_category))
    Path("model.py").write_text(SCRIPT)
    names = {"openai:gpt-4o-2024-08-06": f"{tmp_path / 'model.py'}:reply"}
    for name in ("130m", "1.3b"):
        shutil.copytree(published_checkpoint, tmp_path / f"scanner-{name}")
        names[f"MambaRetriever/SPScanner-{name}"] = str(tmp_path / f"scanner-{name}")
    for name in ("contriever", "dragon", "gritlm"):
        shutil.copytree(bert_folder, tmp_path / name)
        names[f"dense:{name}"] = f"dense:{tmp_path / name}"
    names["openai:gpt-4o-mini"] = "scripted"
    names["openai:gpt-4o"] = "scripted"
    return names


def page_commands(names: Mapping[str, str]) -> list[list[str]]:
    """The arguments of `spscanner` in the section, with the names of the stand-ins."""
    text = PAGE.read_text(encoding="utf-8").partition(SECTION)[2]
    text = text.partition("\n## ")[0]
    lines = []
    for block in blocks_of(text, PAGE.name):
        for words in commands(block.text):
            arguments = []
            for word in words:
                for name, stand_in in names.items():
                    word = re.sub(rf"{re.escape(name)}(?![\w.-])", stand_in, word)
                arguments.append(word)
            assert arguments[0] == "spscanner"
            lines.append(arguments[1:])
    return lines


def tables_of(folder: str) -> dict[str, list[list[str]]]:
    """The rows of each table of `results.md`, by the title in the line above it."""
    rows: dict[str, list[list[str]]] = {}
    title = ""
    for line in (Path(folder) / "results.md").read_text().splitlines():
        if not line.startswith("|"):
            title = line.partition(". ")[0] or title
        elif not set(line) <= set("|- "):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            rows.setdefault(title, []).append(cells)
    return rows


@pytest.mark.slow
def test_the_chain_of_the_scanner_s_paper(
    run: Run, stand_ins: dict[str, str], tmp_path: Path
) -> None:
    pytest.importorskip("sentence_transformers")
    pytest.importorskip("bm25s")
    assert len(BENCHMARKS) == len(set(BENCHMARKS)) == 41
    told = []
    for arguments in page_commands(stand_ins):
        told.append(run(*arguments))
        assert told[-1].code == 0, (arguments, told[-1].err)
    assert "82 questions on 41 documents" in told[0].out
    assert f"{WITHOUT_CATEGORY} (2)" in told[0].out
    assert len(read_lines(Path("test.jsonl"))) == 41
    check_table_1(stand_ins)
    check_figure_3()
    check_tables_2_and_5(stand_ins)


def check_table_1(names: Mapping[str, str]) -> None:
    """Rows by benchmark and category, the mean over questions first."""
    scanner = f"scanner:{names['MambaRetriever/SPScanner-130m']}"
    tables = tables_of("table-1")
    head, *lines = tables["Answers"]
    assert head[1:3] == ["accuracy", "accuracy, macro"]
    by_label = {line[0]: line for line in lines}
    assert len(by_label) == 4
    for label in ("bm25", "whole document"):
        assert by_label[label][1].startswith("100.0")
    assert float(by_label[scanner][1].split()[0]) <= 100
    head, *lines = tables["Answers by source"]
    assert {line[0] for line in lines} == set(BENCHMARKS)
    assert len(lines) == 4 * 41
    f1 = head.index("token_f1")
    for line in lines:
        assert (line[f1] == "N/A") == (line[0] in MULTIPLE_CHOICE), line
    categories = {line[0] for line in tables["Answers by category"][1:]}
    assert categories == {*CATEGORIES, "other"}
    chunks = {line[0] for line in tables_of("table-1-chunks")["Answers"][1:]}
    assert len(chunks) == 4, "BM25 and three embedding models"
    asked = json.loads(Path("table-1/answers.json").read_text())["rows"]
    assert {row["metric"] for row in asked} >= {"accuracy", "accuracy_by_length"}


def check_figure_3() -> None:
    """Seven bins of length for each retriever, up to 256k+ tokens."""
    bins: dict[str, list[str]] = {}
    for line in tables_of("table-1")["Answers by length"][1:]:
        bins.setdefault(line[0], []).append(line[1])
    expected = [length_name(edge) for edge in LENGTH_EDGES]
    assert set(map(tuple, bins.values())) == {tuple(expected)}
    assert expected[-1] == "256k+"


def check_tables_2_and_5(names: Mapping[str, str]) -> None:
    """Recall and precision of labelled evidence, operations, and seconds."""
    labelled = read_lines(Path("labelled/test.jsonl"))
    assert sum(len(line["questions"]) for line in labelled) > 41
    head, *lines = next(iter(tables_of("table-5").values()))
    for column in ("TFLOPs", "TFLOPs, padded", "seconds", "computing"):
        assert column in head
    rows = json.loads(Path("table-5/results.json").read_text())
    measured = {
        (row["retriever"], row["unit"], row["metric"], row["k"]) for row in rows
    }
    for k in (1, 5, 10, 50):
        for metric in ("recall", "precision"):
            assert ("bm25", "chunk", metric, k) in measured
    scanner = f"scanner:{names['MambaRetriever/SPScanner-130m']}"
    retrievers = {row["retriever"] for row in rows}
    assert f"{scanner}, sentence alone" in retrievers, "Figure 4"
    assert f"{scanner}, chunk of 1,024 tokens alone" in retrievers
    for row in rows:
        key = (row["retriever"], row["unit"], row["metric"], row["k"], row["source"])
        if key == ("bm25", "sentence", "recall", 1, "micro"):
            assert row["value"] == pytest.approx(1), "its sentence has the words"
            break
    else:
        raise AssertionError("bm25 has no recall@1")
    assert lines
