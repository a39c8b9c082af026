"""A language model that names the sentences a question needs: the generative baseline of appendix E.2."""

import math
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.baselines.base import Baseline, check_whole
from spscanner_rag.baselines.units import UnitKind
from spscanner_rag.lab.llm.asking import BLANK, Asker
from spscanner_rag.lab.llm.language_models import LanguageModel, language_model_of
from spscanner_rag.lab.llm.prompts import fenced_prompt, without_thoughts
from spscanner_rag.text.token_counts import CountTokens, resolve_counter
from spscanner_rag.text.units import Segmenter, Unit

NOT_NAMED = -20.0  # the logit of a unit that the model did not name

_ROOM = 1_000
_NUMBERS = re.compile(r"\bSENTENCES\b[*_`]*\s*:[*_`]*\s*(.*?)\s*$", re.IGNORECASE | re.MULTILINE)
_INSTRUCTIONS = (
    "A question is given, and a document as numbered sentences. Choose the sentences from which the question can "
    "be answered, among them those without which the others cannot be understood."
)


class Generative(Baseline):
    """A language model reads the whole document and names sentences, the most important first.

    Sentences count until they fill ``budget_tokens``; those that it did not name get `NOT_NAMED`. A document of
    more than ``window_tokens`` is read in windows, each with the whole budget, and the best of every window
    come first. A reply without a usable number names nothing. ``model`` and ``asker`` are those of
    `answer_quality`.
    """

    def __init__(
        self,
        model: object,
        unit: UnitKind | Segmenter = "sentence",
        *,
        budget_tokens: int = 2_000,
        window_tokens: int = 100_000,
        count_tokens: CountTokens | str = "o200k_base",
        asker: Asker | None = None,
    ) -> None:
        super().__init__(unit)
        check_whole(budget_tokens=budget_tokens, window_tokens=window_tokens)
        self._model: LanguageModel = language_model_of(model)
        self.name = f"generative:{self._model.name}"
        self.budget_tokens, self.window_tokens = budget_tokens, window_tokens
        self._count = resolve_counter(count_tokens)
        self.asker = asker or Asker()

    def raw_scores(self, query: str, text: str, units: Sequence[Unit]) -> NDArray[np.float32]:
        """Return 1 for the first sentence that the model names, 1/2 for the second, ..., else 0: (units,)."""
        shown = [" ".join(unit.own_text(text).split()) for unit in units]
        tokens = [self._count(line) for line in shown]
        scores = np.zeros(len(units), np.float32)
        for first, last in _windows(tokens, self.window_tokens):
            lines = "\n".join(f"[{number}] {shown[number]}" for number in range(first, last))
            closing = (
                "Write one line: the word SENTENCES, a colon, and the numbers of the sentences with commas "
                f"between them, the most important first, together at most about {self.budget_tokens} tokens; "
                "NONE if no sentence helps."
            )
            sections = {"QUESTION": query, "SENTENCES": lines}
            reply = self._reply(fenced_prompt(_INSTRUCTIONS, sections, closing))
            spent = 0
            for rank, number in enumerate(numbers_in(reply, first, last), 1):
                spent += tokens[number]
                if spent > self.budget_tokens:
                    break
                scores[number] = max(scores[number], 1 / rank)
        return scores

    def logits(self, raw: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the logarithm of the inverse rank, above 0 for what the model named, or `NOT_NAMED`: (units,)."""
        named = raw > 0
        logits = np.full(raw.shape, NOT_NAMED, np.float32)
        logits[named] = np.log(raw[named]) + math.log(2 * max(_ROOM, len(raw)))
        return logits

    def _reply(self, prompt: str) -> str:
        (reply,) = self.asker.ask(self._model, [prompt])
        if reply.text is None and reply.error != BLANK:
            raise OSError(f"{self.name} did not reply: {reply.error}; the same command asks it again")
        return reply.text or ""


def numbers_in(reply: str, first: int, last: int) -> list[int]:
    """Return the different numbers, from ``first`` to below ``last``, of a reply's last line of numbers."""
    lines = _NUMBERS.findall(without_thoughts(reply))
    if not lines:
        return []
    found = (int(number) for number in re.findall(r"(?<![-\d])\d{1,9}", lines[-1]))
    return [number for number in dict.fromkeys(found) if first <= number < last]


def _windows(tokens: Sequence[int], limit: int) -> list[tuple[int, int]]:
    """Return ranges of units of at most so many tokens; a longer unit is alone."""
    windows, first, total = [], 0, 0
    for number, count in enumerate(tokens):
        if number > first and total + count > limit:
            windows.append((first, number))
            first, total = number, 0
        total += count
    return [*windows, (first, len(tokens))] if tokens else []
