"""FirstP, LongP, MaxP and SumP: how a document's score comes from its passages."""

from pathlib import Path

import numpy as np
import pytest

from spscanner_lab.evaluation.aggregation import DOCUMENT_FORMS, document_form
from spscanner_lab.evaluation.corpus_units import segmenter_for
from spscanner_lab.evaluation.plan import EvaluationPlan
from spscanner_lab.evaluation.questioner import Questioner
from spscanner_lab.evaluation.records import RecordFile
from spscanner_lab.evaluation.study import corpus_study_of
from spscanner_lab.evidence.questions import Document, Question
from spscanner_rag.baselines.bundled_token_counter import bundled_token_counter
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
    assert form.unit is None
    assert document_score(LOGITS, form.aggregation) == pytest.approx(score, abs=1e-5)


def test_other_names() -> None:
    assert document_form("mean_top").aggregation == "mean_top"
    assert document_form("long") == ("long", None)
    names = "FirstP, FirstP-512, LongP, LongP-1536, MaxP, SumP"
    with pytest.raises(ValueError, match=rf"one of max, .*, {names}"):
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
    plan = EvaluationPlan(aggregation=form.aggregation, unit=form.unit)
    settings = [Setting("mine")]
    if form.unit is not None:  # read as that unit, they differ in nothing
        settings.append(Setting("mine", "chunk:3"))
    study = corpus_study_of(settings, documents, plan)
    (setting,) = study.settings
    assert setting.unit == (form.unit or "sentence")
    file = RecordFile(tmp_path, {})
    scorer = Given(**SCORES)
    for setting_run in study.setting_runs:
        Questioner(setting_run, {setting: scorer}, words).ask_all({}, file)
    ranks = {}
    for record in file.records.values():
        ranks[record.doc_id] = record.metrics["document_mrr"]
    assert ranks[best] == 1.0


LONG = "The day ended. " * 200 + "A heron flies. " + "The day ended. " * 400 + "A newt."


@pytest.mark.parametrize(
    ("name", "seen"),
    [("FirstP-512", {"day"}), ("LongP-1536", {"day", "heron"})],
)
def test_the_first_tokens_are_read_as_the_paper_of_rerankers_has_it(
    name: str, seen: set[str]
) -> None:
    """Of 1,804 words, the heron is behind 512 tokens and before 1,536, the newt last.

    Xu et al. (2024) read 512 tokens (FirstP) and 1,536 (LongP) of a document.
    """
    form = document_form(name)
    assert form.unit == f"document:{name.rpartition('-')[2]}"
    (unit,) = segmenter_for(form.unit).segment(LONG)
    tokens = bundled_token_counter()(unit.model_text)
    assert tokens == int(name.rpartition("-")[2])
    assert LONG.startswith(unit.model_text)
    assert {word for word in SCORES if word in unit.model_text} == seen
    assert DOCUMENT_FORMS[name].aggregation == "long"
    label = Setting("bm25", form.unit).label
    assert label == f"bm25, first {tokens} tokens of documents"
