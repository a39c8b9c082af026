"""Reading judged corpora in BEIR's layout."""

from pathlib import Path

import pytest

from spscanner_lab.evaluation.judged import is_beir, read_beir
from spscanner_lab.evaluation.judged_study import judged_study_of
from spscanner_lab.evaluation.plan import EvaluationPlan
from spscanner_lab.evaluation.trec_runs import write_run
from spscanner_lab.evidence.data_lines import DataError
from spscanner_rag.baselines.settings import Setting
from tests.lab.evaluation.beir_folder import folder_of


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"corpus": []}, "corpus.jsonl: expected at least one document"),
        ({"corpus": [{"_id": "d0", "text": "a"}] * 2}, "line 2: got the id 'd0' twice"),
        ({"corpus": [{"_id": 3, "text": "a"}]}, "got the id 3 that is not a string"),
        ({"corpus": [{"text": "a"}]}, "expected a JSON object with _id and text"),
        (
            {"qrels": [("q0", "d99", 1)]},
            "the judgements name the document 'd99', which does not exist",
        ),
        ({"qrels": [("q99", "d1", 1)]}, "the judgements name the query 'q99'"),
        (
            {"qrels": [("q0", "d1", 1), ("q0", "d1", 2)]},
            "document 'd1' is judged twice for query 'q0'",
        ),
        (
            {"qrels": [("q0", "d1", "high")]},
            "line 2: expected query, document, grade, got 'q0 d1 high'",
        ),
        ({"qrels": [("q0", "d1", 0)]}, "no query of 'test' has a relevant document"),
        ({"qrels": []}, "expected a line for each query and judged document"),
    ],
)
def test_bad_folders(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    folder = folder_of(tmp_path / "animals", **changes)
    assert is_beir(folder)
    with pytest.raises(DataError, match=message):
        read_beir(folder)


def test_other_refusals(tmp_path: Path) -> None:
    judged = read_beir(folder_of(tmp_path / "animals"))
    with pytest.raises(ValueError, match='--aggregation: got "long" for units'):
        judged_study_of([Setting("bm25")], judged, EvaluationPlan(aggregation="long"))
    with pytest.raises(DataError, match="no such file; expected BEIR's"):
        read_beir(tmp_path / "animals", "train")
    assert not is_beir(tmp_path)
    with pytest.raises(
        ValueError, match="got the id 'a b'; expected one without white space"
    ):
        write_run(tmp_path / "run", {"q": [("a b", 1.0)]}, "t")
