"""Labels the questions of files with language models.

The same call resumes a killed run in its folder.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from spscanner_lab.annotation.labelling import (
    NARROW_WINDOW,
    WIDE_WINDOW,
    Annotator,
    AnswerCheck,
    LabelledQuestion,
    Labeller,
    annotated_line,
)
from spscanner_lab.evidence.questions import Document, read_documents
from spscanner_lab.llm.asking import Asker
from spscanner_lab.llm.budget import Budget
from spscanner_lab.llm.language_models import LanguageModel
from spscanner_lab.synthesis.conversation import Conversation, DroppedError
from spscanner_lab.synthesis.outcomes import Outcome, Show, write_outcomes
from spscanner_lab.synthesis.prompt_files import Prompt, prompts_digest, read_prompts
from spscanner_lab.synthesis.run_folder import (
    asker_in,
    note_settings,
    refuse_folder_of_inputs,
    spent,
    write_summary,
)
from spscanner_lab.synthesis.scripted import NAME, model_of
from spscanner_lab.training import Notify
from spscanner_rag.system.folder_lock import folder_lock

PROMPTS = "spscanner_lab.annotation"
"""The package whose prompts are used."""

_TRIES = 3  # how often a model is asked for a reply in the right form


@dataclass(frozen=True, slots=True)
class AnnotationModels:
    """Models that label, label again in wide windows, and check.

    Each is a name, or an object of either framework.

    By default the model that labels does all three.
    """

    labeller: object = NAME
    stronger: object = None
    checker: object = None

    def load(self) -> list[LanguageModel]:
        """Load the three models, in this order."""
        labeller = model_of(self.labeller)
        models = [labeller]
        for other in (self.stronger, self.checker):
            models.append(labeller if other is None else model_of(other))
        return models


def annotate(
    files: Sequence[Path],
    out: Path,
    models: AnnotationModels,
    *,
    prompts: Path | None = None,
    budget: Budget | None = None,
    workers: int = 8,
    notify: Notify = lambda message: None,
    show: Show = lambda done, examples, budget: None,
) -> dict[str, Any]:
    """Label the questions of question files, and return the summary.

    Questions need ``answers``; evidence that they have is not read. The folder gets
    ``test.jsonl`` with the questions that were labelled and checked, which
    ``spscanner eval`` reads, ``summary.json``, and every prompt and reply. The same
    call resumes an interrupted run.

    Parameters
    ----------
    files : sequence of Path
        Question files.
    out : Path
        The folder.
    models : AnnotationModels
        The models.
    prompts : Path, optional
        A folder whose prompts replace those of the package.
    budget : Budget, optional
        Limits of requests and cost, of all models together.
    workers : int, default 8
        Documents worked on at the same time.
    notify, show : callable
        Take messages, and the numbers so far.

    Raises
    ------
    OtherRunError
        If the folder holds a run with other settings.
    DataError
        For a bad line of a file.
    """
    refuse_folder_of_inputs(out, files)
    wording = read_prompts(prompts, PROMPTS)
    loaded_models = models.load()
    for _ in read_documents(files, distinct=True):
        pass  # a bad line is reported before any request
    names = [model.name for model in loaded_models]
    settings = {
        "files": list(map(str, files)),
        "models": names,
        "prompts": prompts_digest(wording),
    }
    with folder_lock(out):
        note_settings(out, settings)
        asker = asker_in(out, budget, workers, notify)
        work = _Work(loaded_models, asker, wording)
        start = time.perf_counter()
        documents = read_documents(files, distinct=True)
        counts = write_outcomes(
            out, asker, documents, work.outcome_of, show, "documents"
        )
        summary = {
            "documents": counts.items,
            "questions": counts.questions,
            **counts.as_json(),
            **spent(asker.budget),
            "seconds": round(time.perf_counter() - start, 1),
            "models": names,
        }
        write_summary(out, summary)
    return summary


def annotator_of(
    labeller: object,
    stronger: object = None,
    checker: object = None,
    asker: Asker | None = None,
) -> Annotator:
    """Return an annotator of models, which are names or objects of either framework."""
    models = AnnotationModels(labeller, stronger, checker).load()
    work = _Work(models, asker or Asker(), read_prompts(None, PROMPTS))
    return work.annotator(Counter())


@dataclass(frozen=True, slots=True)
class _Work:
    """Makes the line of a question file for a document."""

    models: Sequence[LanguageModel]
    asker: Asker
    wording: Mapping[str, Prompt]

    def annotator(self, malformed: Counter[str]) -> Annotator:
        """Return an annotator that counts malformed replies of all its models."""
        labeller, stronger, checker = self.models
        ask_checker = partial(self.asker.ask, checker)
        return Annotator(
            Labeller(
                conversation=self._conversation(labeller, malformed),
                name=labeller.name,
                window=NARROW_WINDOW,
            ),
            Labeller(
                conversation=self._conversation(stronger, malformed),
                name=stronger.name,
                window=WIDE_WINDOW,
            ),
            AnswerCheck(
                conversation=self._conversation(checker, malformed), ask=ask_checker
            ),
        )

    def _conversation(
        self, model: LanguageModel, malformed: Counter[str]
    ) -> Conversation:
        ask: Callable[[str], str] = partial(self.asker.ask, model)
        return Conversation(ask, self.wording, _TRIES, malformed)

    def outcome_of(self, document: Document) -> Outcome:
        """Label the questions of a document."""
        malformed: Counter[str] = Counter()
        dropped: Counter[str] = Counter()
        annotator = self.annotator(malformed)
        labelled_questions: list[LabelledQuestion] = []
        for question in document.questions:
            try:
                labelled_questions.append(annotator.label(document, question))
            except DroppedError as error:
                dropped[str(error)] += 1
        if not labelled_questions:
            return Outcome(None, dropped, malformed)
        labeller, stronger, checker = (model.name for model in self.models)
        provenance = {"labeller": labeller, "stronger": stronger, "checker": checker}
        line = annotated_line(document, labelled_questions, provenance)
        return Outcome(line, dropped, malformed)
