"""Loads the scorers of an evaluation."""

from dataclasses import replace
from typing import NamedTuple

from spscanner_lab.evaluation.ablations import CONTEXTS, Chunked
from spscanner_lab.evaluation.study import Study
from spscanner_rag.apps.cli.model_options import RetrieverOptions
from spscanner_rag.baselines.names import scorer_of
from spscanner_rag.baselines.settings import Setting
from spscanner_rag.scorers import Scorer


class LoadedScorers(NamedTuple):
    """Scorers by the retriever's name, and by setting."""

    by_name: dict[str, Scorer]
    by_setting: dict[Setting, Scorer]


def load_scorers(
    computes: RetrieverOptions, titles: dict[str, str], study: Study, documents: int
) -> LoadedScorers:
    """The scorers of a study on this number of documents.

    A missing one is reported before any work starts. ``titles`` will have the titles of
    the texts that are read.
    """
    loading = computes.loading(titles=titles)
    if study.of_corpora:
        # each question reads many texts, and the next question reads them again
        kinds = {*computes.units, "sentence", "chunk"}
        loading = replace(loading, keep_texts=documents * len(kinds))
    settings = [*study.settings, *study.stages]
    by_name: dict[str, Scorer] = {}
    by_setting: dict[Setting, Scorer] = {}
    for setting in settings:
        if setting.retriever not in by_name:
            by_name[setting.retriever] = scorer_of(setting.retriever, loading)
        scorer = by_name[setting.retriever]
        for variant in setting.variants:  # of a scanner
            scorer = Chunked(scorer, CONTEXTS[variant])  # type: ignore[arg-type]
        by_setting[setting] = scorer
    return LoadedScorers(by_name, by_setting)
