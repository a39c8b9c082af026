"""`spscanner verify`, from its arguments to its output and exit code."""

import json
from pathlib import Path

import pytest

from tests.command_line import Run


@pytest.fixture
def answer(tmp_path: Path) -> Path:
    path = tmp_path / "answer.md"
    path.write_text('Then "Anne signed the treaty" [1].', encoding="utf-8")
    return path


def test_a_supported_answer(run: Run, answer: Path, document: Path) -> None:
    code, out, err = run("verify", answer, document, "--no-claims")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == 'supported  quote  "Anne signed the treaty"'
    assert out.splitlines()[-1] == "1 statement: 1 supported"


def test_an_altered_answer_as_json(run: Run, answer: Path, document: Path) -> None:
    answer.write_text('Then "Anne did not sign the treaty" [1].', encoding="utf-8")
    code, out, _ = run("verify", answer, document, "--no-claims", "--format", "json")
    assert code == 1
    (statement,) = json.loads(out)["statements"]
    assert statement["status"] == "altered"


@pytest.mark.parametrize(
    ("form", "key"), [("anthropic", "citations"), ("openai", "annotations")]
)
def test_forms_of_apis(
    run: Run, answer: Path, document: Path, form: str, key: str
) -> None:
    _, out, _ = run("verify", answer, document, "--no-claims", "--format", form)
    assert f'"{key}"' in out


def test_a_file_that_cannot_be_read_is_a_note(
    run: Run, answer: Path, document: Path
) -> None:
    code, out, err = run("verify", answer, document, "missing.pdf", "--no-claims")
    assert (code, err.count("\n")) == (0, 1)
    assert "missing.pdf" in err
    assert "1 supported" in out


def test_the_answer_is_never_overwritten(
    run: Run, answer: Path, document: Path
) -> None:
    run("verify", answer, document, "--no-claims", "--out", answer).refuses("--out")
    assert "Anne" in answer.read_text(encoding="utf-8")


def test_control_characters_are_escaped(run: Run, answer: Path, document: Path) -> None:
    answer.write_text('"the \x1b[31mred\u202e captain of them all"', encoding="utf-8")
    _, out, _ = run("verify", answer, document, "--no-claims")
    assert "\x1b" not in out
    assert "\u202e" not in out
