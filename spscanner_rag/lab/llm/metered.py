"""A language model whose replies are kept and counted: asked again after a failure, never again after a reply."""

import asyncio
import inspect
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from spscanner_rag.lab.llm.failures import (
    LastingFailureError,
    is_lasting,
    is_too_many,
    wait_asked_for,
)
from spscanner_rag.lab.llm.language_models import LanguageModel, reply_text
from spscanner_rag.lab.llm.pace import Pace
from spscanner_rag.lab.llm.replies import ReplyFile, digest_of
from spscanner_rag.lab.llm.spending import Spending
from spscanner_rag.lab.llm.usage import Usage, usage_of
from spscanner_rag.text.token_counts import CountTokens
from spscanner_rag.text.units import readable

_ERROR_CHARACTERS = 500


class NoReplyError(Exception):
    """The model failed as often as it may be asked."""


class StoppedError(Exception):
    """The run is ending; no further prompt is asked."""


def words_and_marks(text: str) -> int:
    """About the number of a text's tokens, where no tokenizer is at hand: a token for every four characters."""
    return -(-len(text) // 4)


@dataclass(slots=True, kw_only=True)
class MeteredModel:
    """A model, the file of its replies, its budget and its pace. `ask` may be called from several threads.

    Attributes
    ----------
    model : LanguageModel
    replies : ReplyFile, optional
        Every prompt and reply goes there; a prompt that has a reply there is not asked. Default: none is kept.
    spending : Spending
        Requests and tokens so far, with their limits.
    pace : Pace
        How fast requests may follow each other.
    count_tokens : callable
        Counts the tokens of prompts before they are sent, and of replies that do not report their usage.
    retries : int, default 5
        How often a prompt is asked again after an error or a blank reply.
    pause : float, default 1.0
        Seconds before the first retry. Each further pause is twice as long, and up to a quarter longer at random,
        so that several threads do not come back at once; a longer wait that the provider names is kept.
    stop : threading.Event
        Once set, no further prompt is asked, and pauses end.
    """

    model: LanguageModel
    replies: ReplyFile | None = None
    spending: Spending = field(default_factory=Spending)
    pace: Pace = field(default_factory=Pace)
    count_tokens: CountTokens = words_and_marks
    retries: int = 5
    pause: float = 1.0
    stop: threading.Event = field(default_factory=threading.Event)

    def ask(self, prompt: str, ask: Callable[[str], object] | None = None) -> str:
        """The reply to a prompt: the one in the file, or the model's.

        Parameters
        ----------
        prompt : str
        ask : callable, optional
            Sends the prompt instead of the model's own function, as for structured replies.

        Raises
        ------
        NoReplyError
            If the model failed as often as it may be asked.
        BudgetSpentError, LastingFailureError, StoppedError
            If the run should end.
        """
        prompt = readable(prompt)
        digest = digest_of(self.model.name, prompt)
        if self.replies is not None and (stored := self.replies.get(digest)) is not None:
            return stored
        began, tokens = time.perf_counter(), self.count_tokens(prompt)
        for attempt in range(1, self.retries + 2):
            self._wait(self.pace.delay())
            reserved = self.spending.reserve(tokens)
            text, used, error = self._asked_once(ask or self.model.ask, prompt, tokens)
            self.spending.settle(reserved, used)
            seconds = time.perf_counter() - began
            if text is not None:
                self._keep(prompt, attempt, seconds, used, reply=text)
                return text
            assert error is not None
            told = f"{type(error).__name__}: {error}"[:_ERROR_CHARACTERS]
            lasting = is_lasting(error)
            if lasting or attempt > self.retries:
                self._keep(prompt, attempt, seconds, used, error=told)
                raise LastingFailureError(told) if lasting else NoReplyError(told)
            pause = self.pause * 2 ** (attempt - 1) * (1 + random.random() / 4)
            pause = max(pause, wait_asked_for(error))
            if is_too_many(error):
                self.pace.postpone(pause)
            self._wait(pause)
        raise AssertionError("the loop ends with a reply or an error")

    def _asked_once(
        self, ask: Callable[[str], object], prompt: str, tokens: int
    ) -> tuple[str | None, Usage, Exception | None]:
        try:
            got = ask(prompt)
            if inspect.isawaitable(got):
                got = asyncio.run(_awaited(got))
            text = reply_text(got)
        except Exception as error:  # whatever a client, a network or a function may raise
            return None, Usage(), error
        used = usage_of(got) or Usage(tokens, self.count_tokens(text))
        return (text, used, None) if text.strip() else (None, used, ValueError("the reply is blank"))

    def _keep(self, prompt: str, attempts: int, seconds: float, used: Usage, **outcome: str) -> None:
        if self.replies is not None:
            self.replies.add(
                self.model.name, prompt, attempts=attempts, seconds=seconds, usage=used, **outcome
            )

    def _wait(self, seconds: float) -> None:
        if self.stop.wait(seconds) if seconds > 0 else self.stop.is_set():
            raise StoppedError("the run is ending")


async def _awaited(reply: object) -> object:
    return await reply if inspect.isawaitable(reply) else reply
