"""`spscanner synthesize`: files, exit codes, estimates, and training on the result."""

import json
from pathlib import Path

import pytest

from tests.command_line import Run, write_lines
from tests.lab.synthesis.conftest import story
from tests.lab.training.conftest import RECIPE, SHAPE

QUICK = ("--sizes", "400,800", "--language-probability", "0")
PRICES = ("--price-prompt", "2.5", "--price-reply", "10")


@pytest.fixture
def stories(tmp_path: Path) -> Path:
    lines = [
        {"doc_id": f"story-{number}", "source": "stories", "text": story(number)}
        for number in range(8)
    ]
    return write_lines(tmp_path / "stories.jsonl", *lines)


def test_a_run_then_training_on_it(run: Run, stories: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    made = run(
        "synthesize", stories, "--out", out, *QUICK, *PRICES, "--test-share", "0.3"
    )
    assert made.code == 0, made.err
    summary = json.loads((out / "summary.json").read_text())
    assert (
        summary["examples"]
        == summary["files"]["train.jsonl"] + summary["files"]["test.jsonl"]
        == 7
    )
    assert summary["files"]["test.jsonl"] >= 1
    assert summary["requests"] == 29  # one of eight documents has no link
    assert summary["cost"] == pytest.approx(
        (2.5 * summary["prompt_tokens"] + 10 * summary["reply_tokens"]) / 1e6, abs=1e-5
    )
    (tmp_path / "recipe.toml").write_text(RECIPE.replace("steps = 4", "steps = 2"))
    (tmp_path / "config.json").write_text(json.dumps(SHAPE))
    trained = run(
        "train", tmp_path / "recipe.toml", "--data", out / "train.jsonl",
        "--validation", out / "test.jsonl", "--config", tmp_path / "config.json",
        "--out", tmp_path / "model", "--device", "cpu", "--no-progress",
    )  # fmt: skip
    assert trained.code == 0, trained.err
    assert (tmp_path / "model" / "model.safetensors").exists()


def test_exit_codes(run: Run, stories: Path, tmp_path: Path) -> None:
    early = run(
        "synthesize",
        stories,
        "--out",
        tmp_path / "early",
        *QUICK,
        "--max-requests",
        "12",
        "--workers",
        "1",
    )
    assert early.code == 3
    assert (
        "ended early: the limit of 12 requests is reached; the same command resumes"
        in early.out
    )
    assert run("synthesize", stories, "--out", tmp_path / "early", *QUICK).code == 0
    (tmp_path / "refuse.py").write_text(
        "def model(prompt):\n    return 'I am sorry, I cannot.'\n"
    )
    none = run(
        "synthesize",
        stories,
        "--out",
        tmp_path / "none",
        *QUICK,
        "--llm",
        f"{tmp_path}/refuse.py:model",
    )
    assert none.code == 1
    assert "link_connections: the model refused (8)" in none.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--llm", "openai:gpt-4o-mini"], "pip install llama-index-llms-openai"),
        (["--strategy", "guess"], "strategy: got 'guess'"),
        (["--sizes", "many"], "--sizes: got 'many'"),
        (["--positions", "start-top"], "positions: got"),
        (["--max-cost", "1"], "max_cost: got a limit without prices"),
        (["--against", "absent.jsonl"], "absent.jsonl: no such file"),
        (["--prompts", "absent"], "absent: no such folder"),
    ],
)
def test_bad_arguments(
    run: Run, stories: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    run("synthesize", stories, "--out", tmp_path / "out", *QUICK, *arguments).refuses(
        message
    )


def test_documents_that_share_text_with_tests(
    run: Run, stories: Path, tmp_path: Path
) -> None:
    (tmp_path / "test.txt").write_text(story(3))
    told = run(
        "synthesize",
        stories,
        "--out",
        tmp_path / "out",
        *QUICK,
        "--against",
        tmp_path / "test.txt",
    )
    assert told.code == 0
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["documents_left_out"] == {"shares text with a test document": 1}
    assert summary["shared_with_test_documents"][0].startswith(
        "story-3: 100.0% of its sentences, most with test-1"
    )


def test_prompts_of_the_user(run: Run, stories: Path, tmp_path: Path) -> None:
    folder = tmp_path / "prompts"
    folder.mkdir()
    (folder / "link_question.txt").write_text(
        "version: mine-2\n\nAsk what I want.\n===\nWrite it.\n"
    )
    assert (
        run(
            "synthesize",
            stories,
            "--out",
            tmp_path / "out",
            *QUICK,
            "--prompts",
            folder,
        ).code
        == 0
    )
    line = json.loads((tmp_path / "out" / "train.jsonl").read_text().splitlines()[0])
    assert line["synthesis"]["prompts"]["link_question"] == "mine-2"
    assert "Ask what I want." in (tmp_path / "out" / "replies.jsonl").read_text()
    other = run("synthesize", stories, "--out", tmp_path / "out", *QUICK)
    other.refuses("with other models or options (prompts: ")
