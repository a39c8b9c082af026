"""Chats in which facts change."""

import argparse
import json
from pathlib import Path

import pytest

from spscanner_lab.benchmarks import changed_facts

CHATS = Path(__file__).parents[2] / "data" / "dialogues" / "changed_facts.jsonl"


@pytest.mark.slow
def test_the_current_statement_comes_first(tmp_path: Path) -> None:
    lines = CHATS.read_text(encoding="utf-8").splitlines()
    chats = [json.loads(line) for line in lines]
    held_out = [chat for chat in chats if chat["split"] == "test"]
    assert len(held_out) == 12
    data = tmp_path / "chats.jsonl"
    data.write_text("\n".join(map(json.dumps, held_out)), encoding="utf-8")
    arguments = argparse.Namespace(model=None, threads=None, files=[data])
    rows, ok = changed_facts.measure(arguments)
    assert ok
    changed = rows["test, restated"]
    assert isinstance(changed, dict)
    assert changed["questions"] == 12
    assert changed["first, prefer=newest"] > changed["first, prefer=None"]
