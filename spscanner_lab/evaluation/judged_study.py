"""The study that ranks the documents of a judged corpus for all its queries."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace

from spscanner_lab.evaluation.corpora import SourceCorpus
from spscanner_lab.evaluation.judged import JudgedCorpus
from spscanner_lab.evaluation.plan import EvaluationPlan
from spscanner_lab.evaluation.result import EvaluationResult
from spscanner_lab.evaluation.result_tables import rankings_table
from spscanner_lab.evaluation.run_arguments import arguments_of
from spscanner_lab.evaluation.study import Study, runs_on_corpora, settings_in
from spscanner_lab.evaluation.tables import Table
from spscanner_lab.evidence.questions import Document, Question
from spscanner_rag.baselines.settings import Setting

TESTED = ("ndcg@10", "map")


def judged_study_of(
    settings: Sequence[Setting],
    judged: JudgedCorpus,
    plan: EvaluationPlan,
    seed: int = 0,
) -> Study:
    """The run that a command line asks for, on a judged corpus."""
    settings = settings_in(plan, settings)
    queries = []
    for qid, text in judged.queries.items():
        # each has an empty document, which gives it a distinct name
        document = Document(qid, judged.name, "", "", ())
        queries.append((document, Question(qid, text, ())))
    corpus = SourceCorpus(judged.name, judged.documents, queries)
    setting_runs = []
    for setting_run in runs_on_corpora(settings, [corpus], plan):
        setting_runs.append(replace(setting_run, qrels=judged.qrels))
    content = json.dumps([judged.queries, judged.qrels], sort_keys=True).encode("ascii")
    arguments = arguments_of([corpus], {judged.name: ()}, plan)
    arguments["judgements"] = hashlib.sha256(content).hexdigest()

    def tables(result: EvaluationResult) -> list[Table]:
        counts = (len(judged.queries), len(judged.documents), judged.left_out)
        return [rankings_table(result, *counts)]

    return Study(
        settings,
        {judged.name: ()},
        seed,
        setting_runs=setting_runs,
        arguments=arguments,
        plan=plan,
        tested=(TESTED, TESTED),
        tables=tables,
    )
