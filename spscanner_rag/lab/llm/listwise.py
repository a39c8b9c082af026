"""A language model that puts the best units of a first stage in order: listwise, pairwise or setwise."""

import logging
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.baselines.base import check_whole, log_odds
from spscanner_rag.baselines.bm25 import BM25
from spscanner_rag.baselines.cascade import Staged
from spscanner_rag.baselines.units import UnitKind
from spscanner_rag.lab.llm.asking import Asker
from spscanner_rag.lab.llm.language_models import language_model_of
from spscanner_rag.lab.llm.prompts import fenced_prompt, without_thoughts
from spscanner_rag.lab.llm.replies import ReplyFile
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.scorers import Cancelled, Request, Scorer, check_query, stop_if
from spscanner_rag.text.units import Segmenter

Method = Literal["listwise", "pairwise", "setwise"]

_LOGGER = logging.getLogger(__name__)
_IDENTIFIER = re.compile(r"\[(\d{1,9})\]")
_BARE = re.compile(r"\s*\d{1,9}(?:\s*>\s*\d{1,9})*\s*")


@dataclass(slots=True)
class Faults:
    """Counts of failed prompts and of identifiers that replies left out, repeated or invented, over all calls."""

    failed: int = 0
    missing: int = 0
    doubled: int = 0
    foreign: int = 0


class Listwise(Staged):
    """A language model ranks the ``best`` units of a first stage, which stay above the rest.

    "listwise" is RankGPT (Sun et al., 2023): the model ranks a window of 20 passages, from the last window to
    the first in steps of 10, so that the ten best of all can come first; a reply is "[2] > [1] > ...".
    "pairwise" is PRP-Sliding-K (Qin et al., 2023): neighbours are compared from the back to the front in both
    orders and swapped if both replies agree, ``top`` times. "setwise" (Zhuang et al., 2023, with bubble sort):
    the best of a set of 4 moves to its front and into the next set, ``top`` times. Both bring ``top`` passages
    to the front.

    The scores say the order alone: of m units that the model ranked, the one at rank r has m + 1 - r of m + 1.
    A prompt without a usable reply leaves the order as it was, as do all once ``most_prompts`` of a question
    are spent. In prompts, units are cut to ``passage_words`` words, as by RankGPT. ``model`` and ``asker`` are
    those of `answer_quality`; the first stage is `BM25` by default, and so are its units.
    """

    def __init__(
        self,
        model: object,
        first: Scorer | None = None,
        *,
        method: Method = "listwise",
        best: int = 100,
        window: int = 20,
        step: int = 10,
        set_size: int = 4,
        top: int = 10,
        passage_words: int = 300,
        most_prompts: int | None = None,
        asker: Asker | None = None,
        name: str | None = None,
        unit: UnitKind | Segmenter | None = None,
    ) -> None:
        super().__init__(BM25() if first is None else first, best=best, unit=unit)
        check_whole(step=step, top=top, passage_words=passage_words)
        check_whole(2, window=window, set_size=set_size)
        if most_prompts is not None:
            check_whole(most_prompts=most_prompts)
        if method not in get_args(Method):
            raise ValueError(f"method is {method!r}; expected one of {', '.join(get_args(Method))}")
        if step >= window:
            raise ValueError(
                f"step is {step} for windows of {window}; expected less, so that windows overlap"
            )
        self.method, self.window, self.step, self.set_size, self.top = method, window, step, set_size, top
        self.passage_words, self.most_prompts = passage_words, most_prompts
        self.faults, self.prompts = Faults(), 0
        self.asker = asker or Asker()
        self._model = language_model_of(model, name)
        self.name = f"{method}:{self.first_name}>{self._model.name}@{best}"

    def read_again(
        self,
        chosen: Sequence[Request],
        scores: NDArray[np.float32],
        cancelled: Cancelled,
        collection: CollectionIndex | None,
    ) -> NDArray[np.float32]:
        """Return the logits of the ranks that the model gives to the chosen units: (units,)."""
        if not len(scores):
            return scores
        query = check_query(chosen[0][0])
        texts = [
            " ".join(unit.own_text(text).split()[: self.passage_words])
            for _, text, units in chosen
            for unit in units
        ]
        order: list[int] = np.argsort(-scores, kind="stable").tolist()
        asking = _Asking(self, query, texts, cancelled)
        with self._lock:  # counts, and one question at a time
            before = replace(self.faults)
            getattr(asking, self.method)(order)
            self.prompts += asking.sent
            self._report(before, asking.sent)
        ranks = np.empty(len(order))
        ranks[order] = np.arange(1, len(order) + 1)
        return log_odds(1 - ranks / (len(order) + 1))

    def _report(self, before: Faults, sent: int) -> None:
        names = ("failed", "missing", "doubled", "foreign")
        new = [getattr(self.faults, name) - getattr(before, name) for name in names]
        if any(new):
            _LOGGER.warning(
                "%s: of %d prompts %d failed; of the identifiers in replies, %d were missing, %d doubled, %d "
                "foreign: these passages keep their order",
                self.name, sent, *new,
            )  # fmt: skip


class _Asking:
    """The prompts for one question, which change an order of passages in place."""

    def __init__(self, ranker: Listwise, query: str, texts: Sequence[str], cancelled: Cancelled) -> None:
        self.ranker, self.query, self.texts, self.cancelled = ranker, query, texts, cancelled
        self.sent = 0

    def listwise(self, order: list[int]) -> None:
        """Windows from the back to the front; the last begins at the first passage."""
        end = len(order)
        while True:
            start = max(0, end - self.ranker.window)
            if end - start < 2 or not self._left(1):
                return
            own = order[start:end]
            (reply,) = self._replies(ranking_prompt, [own])
            order[start:end] = [own[number] for number in order_in(reply, len(own), self.ranker.faults)]
            if not start:
                return
            end -= self.ranker.step

    def pairwise(self, order: list[int]) -> None:
        """Passes of a bubble sort; each comparison is asked in both orders."""
        for front in range(min(self.ranker.top, len(order) - 1)):
            for place in range(len(order) - 2, front - 1, -1):
                if not self._left(2):
                    return
                pair = order[place : place + 2]
                replies = self._replies(choosing_prompt, [pair, pair[::-1]])
                chosen = [numbers_in(reply, 2, self.ranker.faults)[:1] for reply in replies]
                if chosen == [[1], [0]]:
                    order[place : place + 2] = pair[::-1]

    def setwise(self, order: list[int]) -> None:
        """Passes of a bubble sort whose steps move the best of a set to its front."""
        for front in range(min(self.ranker.top, len(order) - 1)):
            end = len(order)
            while end - front > 1:
                start = max(front, end - self.ranker.set_size)
                if not self._left(1):
                    return
                own = order[start:end]
                (reply,) = self._replies(choosing_prompt, [own])
                best = numbers_in(reply, len(own), self.ranker.faults)[:1]
                order[start:end] = [own[number] for number in dict.fromkeys(chain(best, range(len(own))))]
                end = start + 1

    def _left(self, prompts: int) -> bool:
        most = self.ranker.most_prompts
        return most is None or self.sent + prompts <= most

    def _replies(
        self, prompt: Callable[[str, Sequence[str]], str], sets: Sequence[Sequence[int]]
    ) -> list[str | None]:
        stop_if(self.cancelled, "between two prompts")
        self.sent += len(sets)
        prompts = [prompt(self.query, [self.texts[number] for number in own]) for own in sets]
        return [reply.text for reply in self.ranker.asker.ask(self.ranker._model, prompts)]


def ranking_prompt(query: str, passages: Sequence[str]) -> str:
    """Return the prompt for a ranking of all passages, after RankGPT's (Sun et al., 2023, figure 1)."""
    return fenced_prompt(
        f"Rank {len(passages)} passages by their relevance to a search query. Each passage is one line that "
        "begins with its identifier, a number in brackets.",
        _sections(query, passages),
        f"Rank the {len(passages)} passages by their relevance to the query, the most relevant first. List all "
        "identifiers in this form: [2] > [1] > [3]. Write the ranking only, without a word of explanation.",
    )


def choosing_prompt(query: str, passages: Sequence[str]) -> str:
    """Return the prompt for the best of some passages (Qin et al., 2023, for two; Zhuang et al., 2023)."""
    return fenced_prompt(
        "Choose the passage that is most relevant to a search query. Each passage is one line that begins with "
        "its identifier, a number in brackets.",
        _sections(query, passages),
        f"Which of the {len(passages)} passages is most relevant to the query? Write its identifier only, such as "
        "[1].",
    )


def order_in(reply: str | None, n: int, faults: Faults) -> list[int]:
    """Return the order of n passages in a reply, from 0, those left out at the end; counts ``faults``."""
    listed = numbers_in(reply, n, faults)
    faults.missing += (n - len(listed)) * (reply is not None)
    return [*listed, *(number for number in range(n) if number not in set(listed))]


def numbers_in(reply: str | None, n: int, faults: Faults) -> list[int]:
    """Return the passages that a reply names, as numbers from 0, each once."""
    if reply is None:
        faults.failed += 1
        return []
    reply = without_thoughts(reply)
    if _BARE.fullmatch(reply):  # "2 > 1 > 3"
        reply = re.sub(r"(\d+)", r"[\1]", reply)
    numbers = [int(number) - 1 for number in _IDENTIFIER.findall(reply)]
    own = [number for number in numbers if 0 <= number < n]
    once = list(dict.fromkeys(own))
    faults.foreign += len(numbers) - len(own)
    faults.doubled += len(own) - len(once)
    return once


def _sections(query: str, passages: Sequence[str]) -> dict[str, str]:
    lines = (f"[{number}] {' '.join(passage.split())}" for number, passage in enumerate(passages, 1))
    return {"QUERY": query, "PASSAGES": "\n".join(lines)}


def keep_replies(scorers: Iterable[object], replies: ReplyFile) -> None:
    """Let all scorers that ask a model, and those that others are made of, keep their replies in a file."""
    for scorer in scorers:
        if isinstance(scorer, Listwise):
            scorer.asker = replace(scorer.asker, replies=replies)
        keep_replies(getattr(scorer, "scorers", ()), replies)
