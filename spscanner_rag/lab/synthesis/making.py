"""Makes examples of documents with a language model, in a folder where the same call goes on after a kill."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Self

from spscanner_rag.baselines.dense import encoder_of
from spscanner_rag.lab.evidence.questions import Document
from spscanner_rag.lab.llm.asking import Asker, Budget, RunEndedError
from spscanner_rag.lab.llm.replies import ReplyFile
from spscanner_rag.lab.synthesis.conversation import (
    Conversation,
    DroppedError,
    model_of,
    prompts_digest,
    read_prompts,
)
from spscanner_rag.lab.synthesis.outcomes import REPLIES, SUMMARY, Outcomes, keep_settings, write_json
from spscanner_rag.lab.synthesis.scripted import NAME
from spscanner_rag.lab.synthesis.settings import SynthesisSettings
from spscanner_rag.lab.synthesis.sources import read_sources, source_files
from spscanner_rag.lab.synthesis.strategies import (
    Made,
    QuestionCheck,
    document_line,
    make_chunk,
    make_link,
    make_pair,
)
from spscanner_rag.lab.synthesis.sub_documents import LanguageDetector, SubDocument, Supply
from spscanner_rag.lab.training import Notify
from spscanner_rag.lab.training.data.decontamination import SharedTextFinder
from spscanner_rag.scan.prepare import bundled_token_counter
from spscanner_rag.text.token_counts import CountTokens, resolve_counter

MOST_FAILURES = 20
"""A run ends after so many sub-documents in a row without a reply: the provider is not there."""

PRICED_ENCODING = "o200k_base"  # tokens are counted with this encoding where a reply does not report them

Show = Callable[["SynthesisRun"], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The inputs and limits of a run, besides its settings."""

    sources: tuple[Path, ...]  # files and folders of documents
    llm: object = NAME  # the name of a model, or a model of either framework
    against: tuple[Path, ...] = ()  # files of test documents
    prompts: Path | None = None  # a folder whose prompts replace those of the package
    embedder: object = "sentence-transformers/all-MiniLM-L6-v2"  # for the strategy "pair"
    budget: Budget = field(default_factory=Budget)


Outcome = tuple[Mapping[str, Any] | None, str, Mapping[str, int]]
"""A line of a question file, or None and the reason; and what was wrong with replies."""


class SynthesisRun:
    """A run in a folder, whose lock the caller holds; a context manager.

    What the model replied to before, in a run found in the folder, is not asked again, and ``budget`` includes it.
    After `run`, ``stopped`` says why it ended early, if it did.
    """

    def __init__(
        self,
        settings: SynthesisSettings,
        options: RunOptions,
        out: Path,
        workers: int = 8,
        most: int | None = None,
        notify: Notify = lambda message: None,
    ) -> None:
        self.settings, self.options, self.out, self.notify = settings, options, out, notify
        self.workers, self.most = workers, most
        self.stopped, self.seconds = "", 0.0
        self._prompts = read_prompts(options.prompts)
        self.model = model_of(options.llm)
        keep_settings(out, self._kept_settings())
        self._replies = replies = ReplyFile(out / REPLIES)
        # what was spent in earlier runs counts
        self.budget = replace(options.budget, requests=replies.attempts, usage=replies.usage)
        self.outcomes = Outcomes(out)
        if len(self._replies):
            notify(f"found {len(self._replies):,} replies, which are not asked for again")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.outcomes.close()

    def run(
        self, shown: AbstractContextManager[Show] | None = None, documents: Iterable[Document] | None = None
    ) -> None:
        """Work through the documents, by default those of the sources; call it with the same documents to go on.

        A budget that is spent, a provider without quota and one that does not reply end the run early.
        Every reply is kept. ``shown`` gives a function to call with the
        run after each outcome.
        """
        settings, options = self.settings, self.options
        detector = LanguageDetector() if settings.language_probability else None
        finder = SharedTextFinder(read_sources(source_files(options.against))) if options.against else None
        if finder is not None:
            self.notify(f"documents are held against {finder.held_out_documents:,} test documents")
        self._supply = Supply(settings, bundled_token_counter(), detector, finder)
        check = QuestionCheck(settings, detector)
        self._make: Callable[[SubDocument, Conversation], Made]
        if settings.strategy == "pair":
            self._make = partial(make_pair, check, encoder_of(options.embedder))
        else:
            self._make = partial(make_link if settings.strategy == "link" else make_chunk, check)
        self._asker = Asker(
            replies=self._replies,
            budget=self.budget,
            count_tokens=self._price_counter(),
            workers=self.workers,
            retries=5,
        )
        ask = partial(self._asker.ask, self.model)
        self._talk = Conversation(ask, self._prompts, settings.tries)
        sources = read_sources(source_files(options.sources)) if documents is None else documents
        with shown or nullcontext(lambda run: None) as show:
            self._work_through(sources, show)

    def write(self) -> dict[str, int]:
        """Write the training file, the test file and the summary; return the number of examples of each file."""
        counts = self.outcomes.write_files()
        write_json(self.out / SUMMARY, self.summary() | {"files": counts})
        return counts

    def summary(self) -> dict[str, Any]:
        """Return what happened, as JSON: counts with reasons, requests, tokens, cost."""
        supply, outcomes = self._supply, self.outcomes
        return {
            "documents": supply.documents,
            "documents_left_out": dict(supply.left_out),
            "shared_with_test_documents": supply.contaminated,
            "sub_documents": outcomes.done,
            "examples": outcomes.examples,
            "dropped": dict(outcomes.reasons.most_common()),
            "malformed_replies": dict(outcomes.malformed.most_common()),
            "requests": self.budget.requests,
            "prompt_tokens": self.budget.usage.prompt_tokens,
            "reply_tokens": self.budget.usage.reply_tokens,
            "cost": round(self.budget.cost, 6),
            "seconds": round(self.seconds, 1),
            "stopped": self.stopped,
        }

    def _work_through(self, documents: Iterable[Document], show: Show) -> None:
        began, failures = time.perf_counter(), 0
        subs = islice(self._supply.of(documents), self.most)
        try:
            with closing(self._asker.in_order(subs, self._outcome)) as results:
                for line, reason, malformed in results:
                    self.outcomes.add(line, reason, malformed)
                    failures = failures + 1 if reason.startswith("no reply") else 0
                    if failures >= MOST_FAILURES:
                        raise RunEndedError(f"{failures} sub-documents in a row got {reason}")
                    show(self)
        except RunEndedError as error:
            self.stopped = self.budget.stopped or str(error)
        finally:
            self.seconds = time.perf_counter() - began
        show(self)

    def _outcome(self, sub: SubDocument) -> Outcome:
        if reason := self._supply.reason_against(sub):
            return None, reason, {}
        talk = replace(self._talk, malformed=Counter())
        try:
            made = self._make(sub, talk)
        except DroppedError as error:
            return None, str(error), talk.malformed
        except RunEndedError:
            self._asker.stop.set()  # the others under way stop at their next prompt
            raise
        versions = {name: prompt.version for name, prompt in self._prompts.items()}
        provenance = {"model": self.model.name, "prompts": versions}
        return document_line(sub, made, self.settings.strategy, provenance), "", talk.malformed

    def _price_counter(self) -> CountTokens:
        """Count tokens as providers do, or nearly, where the file of that encoding is not there."""
        try:
            return resolve_counter(PRICED_ENCODING)
        except OSError as error:
            self.notify(f"tokens are counted with the bundled checkpoint's tokenizer: {error}")
            return bundled_token_counter()

    def _kept_settings(self) -> dict[str, object]:
        options = self.options
        kept: dict[str, object] = asdict(self.settings) | {
            "sources": [str(path) for path in options.sources],
            "against": [str(path) for path in options.against],
            "model": self.model.name,
            "prompts": prompts_digest(self._prompts),
        }
        if self.settings.strategy == "pair":
            kept["embedder"] = str(options.embedder)
        return kept
