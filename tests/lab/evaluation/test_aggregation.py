"""FirstP, LongP, MaxP and SumP: how a document's score comes from its passages."""

from pathlib import Path

import numpy as np
import pytest

from spscanner_lab.evaluation.aggregation import DOCUMENT_FORMS, document_form
from spscanner_lab.evaluation.plan import EvaluationPlan
from spscanner_lab.evaluation.questioner import Questioner
from spscanner_lab.evaluation.records import RecordFile
from spscanner_lab.evaluation.study import corpus_study_of
from spscanner_lab.evidence.questions import Document, Question
from spscanner_rag.baselines.settings import Setting
from spscanner_rag.results.document_scores import document_score
from tests.fakes import words
from tests.lab.evaluation.tiny_study import Given

LOGITS = np.array([-1.0, 2.0, 0.0])


@pytest.mark.parametrize(
    ("name", "score"),
    [("FirstP", -1.0), ("MaxP", 2.0), ("SumP", 0.268941 + 0.880797 + 0.5)],
)
def test_the_score_of_a_document_by_hand(name: str, score: float) -> None:
    form = document_form(name)
    assert not form.reads_whole
    assert document_score(LOGITS, form.aggregation) == pytest.approx(score, abs=1e-5)


def test_other_names() -> None:
    assert document_form("mean_top").aggregation == "mean_top"
    assert document_form("long") == ("long", False)
    with pytest.raises(ValueError, match=r"one of max, .*, FirstP, LongP, MaxP, SumP"):
        document_form("BestP")


# Which document is the best depends on the form: that of "otter" in the first sentence,
# that with the best sentence ("heron"), or that with the most of them ("newt").
TEXTS = {
    "first": "The otter swims. Rain fell. Rain fell. The day ended.",
    "best": "Rain fell. A heron flies. Rain fell. The day ended.",
    "most": "Rain fell. Some newt rests. A newt rests. The newt rests.",
}
SCORES = {"otter": 1.0, "heron": 2.0, "newt": 1.9, "Rain": -9.0, "day": -9.0}


@pytest.mark.parametrize(
    ("name", "best"),
    [("FirstP", "first"), ("MaxP", "best"), ("SumP", "most"), ("LongP", "best")],
)
def test_documents_are_ranked_by_the_form(tmp_path: Path, name: str, best: str) -> None:
    documents = []
    for doc_id, text in TEXTS.items():
        question = Question(f"{doc_id}?", f"Which {doc_id}?", ((0, 4),))
        documents.append(Document(doc_id, "wild", "", text, (question,)))
    form = document_form(name)
    plan = EvaluationPlan(aggregation=form.aggregation, reads_whole=form.reads_whole)
    settings = [Setting("mine"), Setting("mine", "chunk:3")][
        : 2 if name == "LongP" else 1
    ]
    study = corpus_study_of(settings, documents, plan)
    (setting,) = study.settings  # read whole, they differ in nothing
    assert setting.unit == ("document" if name == "LongP" else "sentence")
    file = RecordFile(tmp_path, {})
    scorer = Given(**SCORES)
    for setting_run in study.setting_runs:
        Questioner(setting_run, {setting: scorer}, words).ask_all({}, file)
    ranks = {}
    for record in file.records.values():
        ranks[record.doc_id] = record.metrics["document_mrr"]
    assert ranks[best] == 1.0
    assert set(DOCUMENT_FORMS) == {"FirstP", "LongP", "MaxP", "SumP"}
