import json
from pathlib import Path

from spscanner_rag.lab.training.loop import TrainingLog


def test_a_log_goes_on_where_the_run_does(tmp_path: Path) -> None:
    log = TrainingLog(tmp_path / "log.jsonl")
    log.keep_until(0)
    assert not log.path.exists()
    for step in (1, 2, 3):
        log.append({"step": step, "loss": 0.5})
    log.append({"step": 3, "validation": {"all": {"10": 0.5}}})
    assert log.has_validation(3)
    assert not log.has_validation(2)
    log.append({"step": 4, "loss": 0.5})
    with log.path.open("a") as file:
        file.write('{"step": 5, "lo')  # killed while it was written
    log.keep_until(3)
    assert [json.loads(line)["step"] for line in log.path.read_text().splitlines()] == [1, 2, 3, 3]
    log.keep_until(2)
    assert not log.has_validation(3)
    log.append({"step": 3, "loss": 0.4})
    assert json.loads(log.path.read_text().splitlines()[-1]) == {"step": 3, "loss": 0.4}
