"""What one setting is asked in a run."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from spscanner_lab.evaluation.corpora import SourceCorpus
from spscanner_lab.evaluation.plan import EvaluationPlan
from spscanner_rag.baselines.settings import Setting

Qrels = dict[str, dict[str, int]]
"""The grade of each judged document, by query and document."""


@dataclass(frozen=True)
class SettingRun:
    """All questions of a run that one setting is asked.

    Parameters
    ----------
    setting : Setting
        The one that the records name.
    scorer : Setting
        The plain setting whose scorer is asked.
    corpora : callable
        Returns the corpora. Single documents are made one by one, so that few are in
        memory.
    plan : EvaluationPlan
        How the questions are asked.
    stage : Setting or str, optional
        The first stage, as in `documents_to_read`, or the setting whose scorer it is.
    together : bool
        Whether each question is asked separately, of a whole corpus; otherwise all
        questions on a document are asked of that document alone, in one call.
    calibrate : bool
        Whether sigmoids of scores are probabilities, and questions may be unanswerable.
    qrels : dict, optional
        If questions are queries, for which documents are ranked.
    """

    setting: Setting
    scorer: Setting
    corpora: Callable[[], Iterable[SourceCorpus]]
    plan: EvaluationPlan = field(default_factory=EvaluationPlan)
    stage: Setting | str | None = None
    together: bool = False
    calibrate: bool = False
    qrels: Qrels | None = None
