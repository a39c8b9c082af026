"""The command trains a scan and saves it with the checkpoint that it was given."""

import json
from pathlib import Path

import numpy as np
import pytest

from spscanner_lab.evidence.sampling import is_held_out
from spscanner_lab.training.meaning_scores import ScoredQuestion
from spscanner_lab.training.sentence_scan_checkpoint import (
    UnseenDocuments,
    _encoder_of,
    _platt_factors,
    _rescaled,
    _without_encoder,
)
from spscanner_rag import Scanner
from spscanner_rag.apps.cli.app import main
from spscanner_rag.checkpoint.location import locate

PEOPLE = ("Ann", "Bob", "Carla", "Dov", "Eve", "Finn")


def write_questions(path: Path) -> None:
    """Documents of 36 sentences with six questions each; some are held out."""
    rows = []
    for number in range(24):
        sentences = []
        questions = []
        for place in range(36):
            name = PEOPLE[place % 6]
            sentences.append(f"{name} counted {number * place + 7} boats at the quay.")
        text = " ".join(sentences)
        for place in range(number % 5, 36, 7):
            # one in three is somewhere else, or scores would separate perfectly
            answer = sentences[place if place % 3 else 35 - place]
            start = text.index(answer)
            questions.append(
                {
                    "qid": f"q{place}",
                    "question": f"Who saw {number * place + 7} ships in the port?",
                    "answers": [],
                    "evidence": [[start, start + len(answer)]],
                }
            )
        row = {"doc_id": f"d{number}", "source": "quay", "title": "", "text": text}
        rows.append(row | {"questions": questions})
    assert any(is_held_out(f"d{number}") for number in range(24))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.mark.slow
def test_the_command_gives_a_checkpoint_a_scan(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    write_questions(rows)
    out = tmp_path / "out"
    unseen = [str(rows), f"{locate(None)}={rows}"]
    arguments = ["sentence-scan", "--unseen", *unseen, "--steps", "12"]
    assert main([*arguments, "--out", str(out)]) == 0
    scanner = Scanner.from_pretrained(out, device="cpu", dtype="float32")
    record = scanner.checkpoint.settings.training["sentence_scan"]
    assert record["steps"] == 12
    assert record["examples_by_source"]["quay"] > 0
    assert record["weighed_on"]["quay"] > 0
    text = json.loads(rows.read_text(encoding="utf-8").splitlines()[0])["text"]
    result_of_scan = scanner.scan("Who saw 7 ships?", text, read=0)
    assert result_of_scan.tokens_read == 0
    assert len(result_of_scan.logits) == 36


def test_the_scan_is_calibrated_on_the_questions() -> None:
    """Its mean probability is then the share of relevant sentences."""
    draw = np.random.default_rng(0)
    questions = []
    for number in range(30):
        relevant = np.arange(12) == number % 12
        estimates = (3 * draw.normal(2.0 * relevant, 1) + 5).astype(np.float32)
        zeros = np.zeros(12, np.float32)
        questions.append(
            ScoredQuestion("a", zeros, zeros, relevant, estimates=estimates)
        )
    factor, shift = _platt_factors(questions)
    assert 0 < factor < 1
    assert shift < 0
    calibrated = _rescaled(questions, factor, shift)
    logits = np.concatenate([question.estimates for question in calibrated])
    assert (1 / (1 + np.exp(-logits))).mean() == pytest.approx(1 / 12, abs=1e-3)
    assert questions[0].estimates.mean() > 4, "they are not changed"


def test_an_encoder_of_a_folder_or_the_base_s_own_reads_a_part(
    bundled: Scanner, tmp_path: Path
) -> None:
    assert bundled.meaning is not None
    file = tmp_path / "rows.jsonl"
    own = UnseenDocuments(None, [], file)
    assert _encoder_of(own, bundled.meaning) is bundled.meaning
    other = UnseenDocuments(Path(locate(None)), [], file)
    meaning = _encoder_of(other, bundled.meaning)
    assert meaning is not bundled.meaning
    assert meaning.encoder.digest == bundled.meaning.encoder.digest


def test_the_token_reader_s_logits_are_those_without_an_encoder(
    bundled: Scanner,
) -> None:
    alone = _without_encoder(bundled)
    assert (alone.meaning, alone.checkpoint.sentence_scan) == (None, None)
    assert bundled.meaning is not None


def test_a_checkpoint_without_an_encoder_is_refused(
    tmp_path: Path, tiny_checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "rows.jsonl"
    write_questions(rows)
    arguments = ["--unseen", str(rows), "--base", str(tiny_checkpoint)]
    assert main(["sentence-scan", *arguments, "--out", str(tmp_path / "out")]) == 2
    assert "has no encoder" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
