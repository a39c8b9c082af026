"""Rankings as TREC's run files."""

from pathlib import Path

import pytest

from spscanner_lab.evaluation.trec_runs import write_run

ir_measures = pytest.importorskip("ir_measures")


@pytest.mark.parametrize(
    "scores", [[3.0, 1.0, 1.0 + 1e-9, 1.0, 0.0, -1e30], [0.0] * 12, [-1.0, -1.0, -1.0]]
)
def test_a_run_keeps_its_order_in_their_tools(
    scores: list[float], tmp_path: Path
) -> None:
    path = tmp_path / "run.trec"
    found = [
        (f"d{i:02}", score) for i, score in enumerate(sorted(scores, reverse=True))
    ]
    write_run(path, {"q": found}, "ours and more")
    run = list(ir_measures.read_trec_run(str(path)))
    assert [line.doc_id for line in run] == [name for name, _ in found]
    for place, (name, _) in enumerate(found, 1):
        (rank,) = ir_measures.iter_calc([ir_measures.RR], {"q": {name: 1}}, run)
        assert rank.value == pytest.approx(1 / place)
