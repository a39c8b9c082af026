"""Labels the questions of files with language models, in a folder, resumed where it stopped."""

from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from spscanner_rag.lab.evidence.questions import Document, read_documents
from spscanner_rag.lab.llm.asking import RunEndedError, in_order
from spscanner_rag.lab.llm.replies import ReplyFile
from spscanner_rag.lab.synthesis import start
from spscanner_rag.lab.synthesis.annotation import Annotator, Labelled, Mode, annotated_line
from spscanner_rag.lab.synthesis.conversation import DroppedError
from spscanner_rag.lab.synthesis.outcomes import (
    REPLIES,
    SUMMARY,
    OutcomeFile,
    keep_settings,
    write_json,
)
from spscanner_rag.lab.synthesis.prompt_files import prompts_digest, read_prompts
from spscanner_rag.lab.training import Notify


class AnnotationModels(NamedTuple):
    """Names of the models that label, label again, and check; or objects of either framework."""

    labeller: object
    stronger: object
    checker: object


def annotate(
    paths: Iterable[Path],
    out: Path,
    models: AnnotationModels,
    options: start.RunOptions,
    *,
    mode: Mode = "windows",
    tries: int = 3,
    workers: int = 8,
    notify: Notify = lambda message: None,
) -> dict[str, Any]:
    """Label the questions of question files; give the summary, which is also written.

    Questions need ``answers``; evidence that they have is not read. The folder, whose lock the caller holds, gets
    ``test.jsonl`` with the questions that were kept, in the format of `spscanner eval`. The same call goes on
    after an interruption. ``options`` holds prompts, prices and limits; the budget counts the requests of all
    three models.

    Raises
    ------
    ValueError
        If the folder holds a run with other settings, or a file is not a question file.
    """
    paths = list(paths)
    chosen = [start.model_of(model, options.reply_form) for model in models]
    prompts = read_prompts(options.prompts)
    names = [model.language_model.name for model in chosen]
    settings = {"mode": mode, "tries": tries, "models": names, "prompts": prompts_digest(prompts)}
    keep_settings(out, settings | {"data": [str(path) for path in paths]})
    outcomes, stopped = OutcomeFile(out), ""
    with ReplyFile(out / REPLIES) as replies:
        asker = start.asker_of(options, replies, notify)
        talks = [start.conversation_of(model, prompts, asker.ask_one, tries) for model in chosen]
        annotator = Annotator(labeller=talks[0], stronger=talks[1], checker=talks[2], mode=mode)
        provenance = {"mode": mode, "labeller": names[0], "stronger": names[1], "checker": names[2]}
        numbered = islice(enumerate(read_documents(paths, distinct=True)), outcomes.done, None)
        work = in_order(numbered, lambda item: _labelled(annotator, *item), workers, asker.stop)
        try:
            with closing(work) as results:
                for number, document, labelled, counts in results:
                    line = annotated_line(document, labelled, provenance) if labelled else None
                    reason = "" if labelled else "no question was kept"
                    outcomes.add(number, document.doc_id, line, reason, counts)
        except RunEndedError as error:
            stopped = str(error)
        budget = asker.budget
        files = outcomes.write_files(out)
        kept = sum(
            len(record["line"]["questions"]) for record in outcomes.records() if record["line"] is not None
        )
        summary = {
            "documents": outcomes.done,
            "questions": kept,
            "dropped": dict(outcomes.malformed.most_common()),
            "requests": budget.requests,
            "prompt_tokens": budget.usage.prompt_tokens,
            "reply_tokens": budget.usage.reply_tokens,
            "cost": round(budget.cost, 6),
            "files": files,
            "stopped": stopped,
        }
    write_json(out / SUMMARY, summary)
    return summary


def _labelled(
    annotator: Annotator, number: int, document: Document
) -> tuple[int, Document, list[Labelled], Counter[str]]:
    """A document with the questions that are kept, and counts of the others by reason and of malformed replies."""
    annotator = annotator.with_fresh_counts()
    kept: list[Labelled] = []
    counts: Counter[str] = Counter()
    for question in document.questions:
        try:
            kept.append(annotator.label(document, question))
        except DroppedError as error:
            counts[str(error)] += 1
    return number, document, kept, counts + annotator.labeller.malformed
