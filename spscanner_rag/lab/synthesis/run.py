"""A run: sub-documents through a strategy to outcomes, with a limit on cost, resumed where it stopped."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from spscanner_rag.lab.evidence.questions import Document
from spscanner_rag.lab.llm.asking import (
    Budget,
    BudgetSpentError,
    LastingFailureError,
    RunEndedError,
    in_order,
)
from spscanner_rag.lab.synthesis.batch_files import PendingError
from spscanner_rag.lab.synthesis.conversation import Conversation, DroppedError
from spscanner_rag.lab.synthesis.outcomes import OutcomeFile
from spscanner_rag.lab.synthesis.strategies.made import QuestionMaker, document_line
from spscanner_rag.lab.synthesis.sub_documents import SubDocument
from spscanner_rag.lab.synthesis.supply import Supply

MOST_FAILURES = 20
"""A run ends after so many sub-documents in a row without a reply: the provider is not there."""

Show = Callable[["SynthesisRun"], object]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a sub-document: a line of a question file, or None and the reason."""

    sub: SubDocument
    line: Mapping[str, Any] | None
    reason: str = ""
    malformed: Mapping[str, int] = field(default_factory=dict)
    pending: bool = False  # it waits for replies of a batch


@dataclass(slots=True, kw_only=True)
class SynthesisRun:
    """Makes examples of documents and keeps them in a folder, whose lock the caller holds.

    Attributes
    ----------
    supply : Supply
    maker : QuestionMaker
    talk : Conversation
    budget : Budget
    outcomes : OutcomeFile
    workers : int, default 8
        Sub-documents worked on at the same time.
    most : int, optional
        Most sub-documents; default: all.
    provenance : mapping
        Written with every example: model, versions of prompts.
    stopped : str
        After `run`: why it ended early; empty if it did not.
    pending : int
        After `run`: how many sub-documents wait for the replies of a batch.
    """

    supply: Supply
    maker: QuestionMaker
    talk: Conversation
    budget: Budget
    outcomes: OutcomeFile
    workers: int = 8
    most: int | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)
    stopped: str = ""
    pending: int = 0
    seconds: float = 0.0
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self, documents: Iterable[Document], show: Show = lambda run: None) -> None:
        """Work through the documents; call it with the same documents to go on.

        A budget that is spent, a provider without quota and one that does not reply end the run early, and
        ``stopped`` says so. Everything finished before is in the files, and every reply is kept.
        """
        began, failures = time.perf_counter(), 0
        unwritten: list[Outcome] = []  # failures in a row, which may turn out to be the provider's
        try:
            with closing(in_order(self._ahead(documents), self._outcome, self.workers, self.stop)) as results:
                for outcome in results:
                    self.pending += outcome.pending
                    # outcomes are written in order: those after a pending one are made again with the next batch
                    if self.pending:
                        continue
                    unwritten.append(outcome)
                    if outcome.reason.startswith("no reply"):
                        failures += 1
                        if failures >= MOST_FAILURES:
                            raise LastingFailureError(
                                f"{failures} sub-documents in a row got {outcome.reason}"
                            )
                        continue
                    failures = 0
                    self._write(unwritten)
                    show(self)
            self._write(unwritten)
        except RunEndedError as error:
            self.stopped = self.stopped or str(error)
            if isinstance(error, BudgetSpentError):
                self._write(unwritten)
        finally:
            self.seconds = time.perf_counter() - began
        show(self)

    def _ahead(self, documents: Iterable[Document]) -> Iterator[SubDocument]:
        """The sub-documents that have no outcome yet."""
        return islice(self.supply.of(documents), self.outcomes.done, self.most)

    def _outcome(self, sub: SubDocument) -> Outcome:
        if reason := self.supply.reason_against(sub):
            return Outcome(sub, None, reason)
        talk = replace(self.talk, malformed=Counter())
        try:
            made = self.maker.make(sub, talk)
        except DroppedError as error:
            return Outcome(sub, None, str(error), talk.malformed)
        except PendingError:
            return Outcome(sub, None, pending=True)
        except (BudgetSpentError, LastingFailureError) as error:
            self.stopped = self.stopped or str(error)
            self.stop.set()  # the others under way stop at their next prompt
            raise
        return Outcome(sub, document_line(sub, made, dict(self.provenance)), malformed=talk.malformed)

    def _write(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            self.outcomes.add(
                outcome.sub.number, outcome.sub.doc_id, outcome.line, outcome.reason, outcome.malformed
            )
        outcomes.clear()

    def summary(self) -> dict[str, Any]:
        """What happened, as JSON: counts with reasons, requests, tokens, cost."""
        supply, outcomes, budget = self.supply, self.outcomes, self.budget
        return {
            "documents": supply.documents,
            "documents_left_out": dict(supply.left_out),
            "shared_with_test_documents": supply.contaminated,
            "sub_documents": outcomes.done,
            "examples": outcomes.examples,
            "dropped": dict(outcomes.reasons.most_common()),
            "malformed_replies": dict(outcomes.malformed.most_common()),
            "requests": budget.requests,
            "prompt_tokens": budget.usage.prompt_tokens,
            "reply_tokens": budget.usage.reply_tokens,
            "cost": round(budget.cost, 6),
            "seconds": round(self.seconds, 1),
            "waiting_for_a_batch": self.pending,
            "stopped": self.stopped,
        }
