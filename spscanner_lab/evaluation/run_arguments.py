"""The arguments that must be the same when a run resumes."""

import hashlib
import json
from collections.abc import Mapping, Sequence

from spscanner_lab.evaluation.corpora import SourceCorpus
from spscanner_lab.evaluation.plan import EvaluationPlan
from spscanner_lab.evidence.metrics import CUTOFFS
from spscanner_lab.evidence.questions import QuestionOnDocument, document_digest

Questions = Mapping[
    str, Sequence[QuestionOnDocument]
]  # by source, from `sample_questions`


def arguments_of(
    corpora: Sequence[SourceCorpus], questions: Questions, plan: EvaluationPlan
) -> dict[str, object]:
    """The arguments of a study.

    Those that have their default are None.
    """
    corpus_digests = {}
    for corpus in corpora:
        digests = "".join(map(document_digest, corpus.documents))
        corpus_digests[corpus.source] = hashlib.sha256(digests.encode()).hexdigest()
    has_usual_cutoffs = tuple(plan.cutoffs) == CUTOFFS
    return {
        "questions": digest_of(questions),
        "corpora": corpus_digests,
        "among": plan.among,
        "document_characters": plan.characters,
        "aggregation": None if plan.aggregation == "max" else plan.aggregation,
        "cutoffs": None if has_usual_cutoffs else list(plan.cutoffs),
    }


def digest_of(questions: Questions) -> str:
    """SHA-256 of the questions of a run and of the documents that they are about."""
    digest = hashlib.sha256()
    # by `id`, since a document is asked many questions
    document_digests: dict[int, str] = {}
    for source, pairs in questions.items():
        for document, question in pairs:
            if id(document) not in document_digests:
                document_digests[id(document)] = document_digest(document)
            content = [
                source,
                document.doc_id,
                question.qid,
                question.text,
                question.evidence,
                document_digests[id(document)],
            ]
            digest.update(json.dumps(content).encode())
    return digest.hexdigest()
