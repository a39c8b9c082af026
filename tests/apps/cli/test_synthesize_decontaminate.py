"""`spscanner synthesize decontaminate`: which lines are kept and how, and what is said of the others."""

import gzip
import json
from pathlib import Path

import pytest

from tests.lab.synthesis.conftest import story

from .conftest import Run


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    """Six examples, with keys of their own and a character that JSON need not escape."""
    path = tmp_path / "train.jsonl"
    lines = [
        {"doc_id": f"story-{number}", "source": "stories", "text": story(number), "questions": [], "own": "é"}
        for number in range(6)
    ]
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    return path


def test_shared_documents_are_dropped_and_the_other_lines_are_copied(
    run: Run, examples: Path, tmp_path: Path
) -> None:
    test = tmp_path / "test.txt"
    test.write_text(f"{story(2)}\n\x1e\nAn introduction. {story(4)}", encoding="utf-8")
    out, report = tmp_path / "clean.jsonl", tmp_path / "dropped.jsonl"
    told = run("synthesize", "decontaminate", examples, "--against", test, "--out", out, "--report", report)
    assert told.code == 0, told.err
    lines = examples.read_bytes().splitlines(keepends=True)
    assert out.read_bytes() == b"".join(lines[number] for number in (0, 1, 3, 5))
    dropped = [json.loads(line) for line in report.read_text().splitlines()]
    assert [(line["doc_id"], line["line"], line["held_out_doc_id"]) for line in dropped] == [
        ("story-2", 3, "test-1"),
        ("story-4", 5, "test-2"),
    ]
    assert all(line["file"] == str(examples) and line["share"] == 1.0 for line in dropped)
    assert dropped[1]["example"] in story(4)
    assert "4 documents in" in told.out
    assert "2 documents dropped: they share text with 2 test documents" in told.out
    assert "the first is story-2, 100.0% of its sentences, most with test-1" in told.out
    assert not list(tmp_path.glob("*.part"))


def test_several_files_several_tests_and_a_compressed_file(run: Run, examples: Path, tmp_path: Path) -> None:
    packed, out = tmp_path / "more.jsonl.gz", tmp_path / "clean.jsonl"
    more = [json.dumps({"text": story(number)}) for number in (10, 11)]
    packed.write_bytes(gzip.compress("\r\n".join(more).encode()))  # the last line without its end
    tests = [tmp_path / f"test-{number}.txt" for number in (1, 10)]
    for path in tests:
        path.write_text(story(int(path.stem[5:])), encoding="utf-8")
    told = run("synthesize", "decontaminate", examples, packed, "--against", *tests, "--out", out)
    assert told.code == 0, told.err
    texts = [json.loads(line)["text"] for line in out.read_text(encoding="utf-8").splitlines()]
    assert texts == [story(number) for number in (0, 2, 3, 4, 5, 11)]


def test_the_rule_is_adjustable(run: Run, examples: Path, tmp_path: Path) -> None:
    """One of many sentences is shared, which is more than 1 % and less than half."""
    test, out = tmp_path / "test.txt", tmp_path / "clean.jsonl"
    sentences = [sentence for sentence in story(0).split(". ") if len(sentence.split()) >= 12]
    others = " ".join(
        f"Number {number} of the words that this test document alone has is not in any story."
        for number in range(30)
    )
    test.write_text(f"{sentences[0]}. {others}", encoding="utf-8")
    command = ["synthesize", "decontaminate", examples, "--against", test, "--out", out]
    assert "1 documents dropped" in run(*command).out
    assert "0 documents dropped" in run(*command, "--max-share", "0.5").out
    assert out.read_bytes() == examples.read_bytes()
    assert "0 documents dropped" in run(*command, "--min-words", "50").out


def test_nothing_is_left(run: Run, examples: Path, tmp_path: Path) -> None:
    out, report = tmp_path / "clean.jsonl", tmp_path / "dropped.jsonl"
    out.write_text("of an earlier run\n")
    told = run(
        "synthesize", "decontaminate", examples, "--against", examples, "--out", out, "--report", report
    )
    assert told.code == 1
    assert "nothing is left, so" in told.out
    assert out.read_text() == "of an earlier run\n"
    assert len(report.read_text().splitlines()) == 6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"files": ["absent.jsonl"]}, "absent.jsonl: no such file"),
        ({"files": ["notes.txt"]}, "notes.txt: expected a file that ends in .jsonl or .jsonl.gz"),
        ({"files": ["bad.jsonl"]}, "bad.jsonl, line 2: expected a JSON object with a document under 'text'"),
        ({"files": ["empty.jsonl"]}, "empty.jsonl: got no document"),
        ({"against": ["absent.txt"]}, "absent.txt: no such file"),
        ({"against": ["empty.jsonl"]}, "empty.jsonl: got no test document"),
        ({"out": "clean.txt"}, "clean.txt: expected a file that ends in .jsonl"),
        ({"out": "train.jsonl"}, "train.jsonl: got a document to scan"),
        ({"more": ["--report", "clean.jsonl"]}, "--report clean.jsonl: got the file of --out"),
        ({"more": ["--max-share", "1"]}, "max_share is 1.0; expected a share below 1"),
    ],
)
def test_bad_input_writes_nothing(
    run: Run,
    examples: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: dict[str, list[str] | str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("notes.txt").write_text("Some notes.")
    Path("bad.jsonl").write_text('{"text": "One."}\n{"words": "Two."}\n')
    Path("empty.jsonl").write_text("\n")
    asked = {"files": ["train.jsonl"], "against": ["notes.txt"], "out": "clean.jsonl", "more": []} | change
    before = examples.read_bytes()
    told = run(
        "synthesize", "decontaminate", *asked["files"], "--against", *asked["against"], "--out", asked["out"],
        *asked["more"],
    )  # fmt: skip
    assert told.code == 2
    assert message in told.err
    assert told.err.count("\n") == 1
    assert not Path("clean.jsonl").exists()
    assert examples.read_bytes() == before
    assert not list(tmp_path.glob("*.part"))
