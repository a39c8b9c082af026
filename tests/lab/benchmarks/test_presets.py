"""What the presets of ``keep`` keep, measured on small files."""

import argparse
import json
from pathlib import Path

from spscanner_lab.benchmarks import presets

TEXT = "Anne was born in 1787. She signed the treaty. Rain fell all day."
QUERY = "Who signed the treaty?"


def test_files_of_questions_and_of_acl_verbatim_have_a_row_for_each_preset(
    tmp_path: Path,
) -> None:
    start = TEXT.index("She")
    end = TEXT.index(" Rain")
    question = {"qid": "1", "question": QUERY, "evidence": [[start, end]]}
    document = {
        "doc_id": "a", "source": "s", "split": "dev", "title": "", "text": TEXT,
        "questions": [question],
    }  # fmt: skip
    data = tmp_path / "dev.jsonl"
    data.write_text(json.dumps(document), encoding="utf-8")
    result = {"chunk": TEXT, "gold_extraction": [TEXT[start:end]]}
    gold = tmp_path / "gold.jsonl"
    gold.write_text(json.dumps({"query": QUERY, "results": [result]}), encoding="utf-8")
    arguments = argparse.Namespace(
        model=None, threads=None, data=[data], questions=5, acl_verbatim=gold
    )
    rows, ok = presets.measure(arguments)
    assert ok
    assert len(rows) == 8
    for name, quality in rows.items():
        assert isinstance(quality, dict)
        if "balanced" in name:
            assert (quality["precision"], quality["recall"]) == (1.0, 1.0)
