"""A run in its folder: what is kept there, and what is written at the end."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Self, cast

from spscanner_rag.checkpoint.whole_file import write_whole
from spscanner_rag.files.json_files import parse_json
from spscanner_rag.lab.evidence.questions import Document
from spscanner_rag.lab.llm.replies import ReplyFile
from spscanner_rag.lab.synthesis import start
from spscanner_rag.lab.synthesis.batch_files import (
    BATCH_FORMATS,
    BatchCollector,
    BatchFormat,
    read_batch,
)
from spscanner_rag.lab.synthesis.estimate import Estimate
from spscanner_rag.lab.synthesis.outcomes import (
    ESTIMATE,
    REPLIES,
    SUMMARY,
    OutcomeFile,
    keep_settings,
    write_json,
)
from spscanner_rag.lab.synthesis.prompt_files import read_prompts
from spscanner_rag.lab.synthesis.run import Show, SynthesisRun
from spscanner_rag.lab.synthesis.settings import SynthesisSettings
from spscanner_rag.lab.training import Notify


class FolderRun:
    """A run whose folder is locked by the caller; a context manager, which closes the file of replies.

    Raises
    ------
    ValueError
        If the folder holds a run with other settings.
    """

    def __init__(
        self,
        settings: SynthesisSettings,
        options: start.RunOptions,
        out: Path,
        workers: int = 8,
        most: int | None = None,
        notify: Notify = lambda message: None,
    ) -> None:
        self._settings, self._options, self._out = settings, options, out
        self._workers, self._most, self._notify = workers, most, notify
        self._prompts = read_prompts(options.prompts)
        self._model = start.model_of(options.llm, options.reply_form)
        keep_settings(out, start.kept_settings(settings, options, self._model))
        self._outcomes = OutcomeFile(out)
        self._replies = ReplyFile(out / REPLIES)
        if self._outcomes.done:
            notify(f"found {self._outcomes.done:,} finished sub-documents and {len(self._replies):,} replies")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._replies.close()

    def take_batch(self, requests: Path, results: Path) -> tuple[int, int]:
        """Take in the results of a batch; give how many replies came, and how many requests failed."""
        return read_batch(requests, results, self._model.language_model.name, self._replies)

    def run(
        self,
        write_batch: Path | None = None,
        batch_format: str = "openai",
        shown: AbstractContextManager[Show] | None = None,
        documents: Iterable[Document] | None = None,
    ) -> SynthesisRun:
        """Work through the documents, by default those of the sources that the options name.

        With ``write_batch``, ask nothing, and write what would be asked. ``documents`` are the same in every run
        in the folder, for example `framework_documents` of the same list.
        """
        if batch_format not in BATCH_FORMATS:
            raise ValueError(
                f"batch format: got {batch_format!r}; expected one of {', '.join(BATCH_FORMATS)}"
            )
        settings, options, model = self._settings, self._options, self._model
        supply = start.supply_of(settings, options, self._notify)
        asker = start.asker_of(options, self._replies, self._notify)
        collector = BatchCollector(self._replies) if write_batch else None
        ask = asker.ask_one if collector is None else collector.ask_one
        talk = start.conversation_of(model, self._prompts, ask, settings.tries)
        versions = {name: prompt.version for name, prompt in self._prompts.items()}
        run = SynthesisRun(
            supply=supply,
            maker=start.maker_of(settings, options, supply.detector),
            talk=talk,
            budget=asker.budget,
            stop=asker.stop,
            outcomes=self._outcomes,
            workers=self._workers,
            most=self._most,
            provenance={"model": model.language_model.name, "prompts": versions},
        )
        documents = start.documents_of(options) if documents is None else documents
        if shown is None:
            run.run(documents)
        else:
            with shown as show:
                run.run(documents, show)
        if collector is not None and write_batch is not None:
            if collector.prompts:
                lines = collector.lines(model.language_model.name, cast(BatchFormat, batch_format))
                write_whole(write_batch, "".join(lines))
            self._notify(f"{len(collector.prompts):,} requests in {write_batch}")
        return run

    def write(self, run: SynthesisRun) -> dict[str, int]:
        """Write the training file, the test file and the summary; give the number of examples of each file."""
        counts = self._outcomes.write_files(self._out)
        summary: dict[str, Any] = run.summary() | {"files": counts}
        if (path := self._out / ESTIMATE).exists():
            summary["estimate"] = parse_json(path.read_text(encoding="utf-8"))
        write_json(self._out / SUMMARY, summary)
        return counts


def estimate_of(
    settings: SynthesisSettings, options: start.RunOptions, most: int | None, notify: Notify
) -> dict[str, Any]:
    """What a run would ask and cost, as JSON; nothing is asked. See `Estimate`."""
    supply = start.supply_of(settings, options, notify)
    maker = start.maker_of(settings, options, supply.detector)
    estimate = Estimate(maker, read_prompts(options.prompts), start.price_counter(notify))
    for number, sub in enumerate(supply.of(start.documents_of(options))):
        if most is not None and number >= most:
            break
        if supply.reason_against(sub) is None:
            estimate.add(sub)
    figures: dict[str, Callable[[], Any]] | dict[str, Any] = {
        "documents": supply.documents,
        "documents_left_out": dict(supply.left_out),
    }
    return figures | estimate.figures(options.prices)
