"""A language model that names the sentences a question needs (appendix E.2)."""

import math
import re
from collections.abc import Iterator, Sequence

import numpy as np

from spscanner_lab.llm.asking import Asker
from spscanner_lab.llm.fencing import fenced_prompt
from spscanner_lab.llm.language_models import language_model_of
from spscanner_lab.llm.replies import without_thoughts
from spscanner_lab.rerankers.asking_scorer import reply_or_none
from spscanner_rag.baselines.arguments import check_whole
from spscanner_rag.baselines.baseline import Baseline, Scores
from spscanner_rag.baselines.unit_kinds import UnitKind
from spscanner_rag.scorers import Cancelled, Request, never, stop_if
from spscanner_rag.text.units import Segmenter, Unit

UNNAMED_LOGIT = -20.0
"""The logit of a unit that the model did not name."""

_LEAST_UNITS = 1_000  # so that short documents have logits like those of long ones
_NUMBERS = re.compile(
    r"\bSENTENCES\b[*_`]*\s*:[*_`]*\s*(.*?)\s*$", re.IGNORECASE | re.MULTILINE
)
_INSTRUCTIONS = (
    "A question is given, and a document as numbered sentences. Choose the sentences"
    " from which the question can be answered, among them those without which the"
    " others cannot be understood."
)


class GenerativeSelection(Baseline):
    """A language model reads the whole document and names sentences by number.

    It names the most important one first. A document that does not fit into a prompt is
    read in windows, and the best of every window come first. A reply without a usable
    number names nothing.

    Parameters
    ----------
    model : object
        A LlamaIndex or LangChain model, or a function; see `language_model_of`.
    unit : str or Segmenter, default "sentence"
        See `Baseline`.
    most_units : int, default 50
        Most units that are named in a window, as many as the paper's retrievers find.
    window_characters : int, default 400,000
        Most characters of a document in one prompt, about 100,000 tokens.
    asker : Asker, optional
        How the model is asked; with a `ReplyFile`, no prompt is asked again after a
        reply. Default: an `Asker` that stores nothing.

    Examples
    --------
    >>> from spscanner_lab.rerankers.generative_selection import GenerativeSelection
    >>> from spscanner_lab.llm.language_models import LanguageModel
    >>> model = LanguageModel("always-one", lambda prompt: "SENTENCES: 1")
    >>> scorer = GenerativeSelection(model)
    >>> text = "It rained. The captain signed."
    >>> logits = scorer.score_units("Who signed?", text, scorer.units_of(text))
    >>> (logits > 0).tolist()
    [False, True]
    """

    def __init__(
        self,
        model: object,
        unit: UnitKind | Segmenter = "sentence",
        *,
        most_units: int = 50,
        window_characters: int = 400_000,
        asker: Asker | None = None,
    ) -> None:
        super().__init__(unit)
        check_whole(most_units=most_units, window_characters=window_characters)
        self.most_units = most_units
        self.window_characters = window_characters
        self.asker = asker
        self._model = language_model_of(model)
        self.name = f"generative:{self._model.name}"

    def raw_scores_many(
        self, requests: Sequence[Request], cancelled: Cancelled = never
    ) -> Iterator[Scores]:
        """1 for the first unit that the model names, 1/2 for the second, ...

        0 for units that it does not name: (units,) each.
        """
        for query, text, units in requests:
            yield self._scores(query, text, units, cancelled)

    def logits(self, raw: Scores) -> Scores:
        """Return logits above 0 for what the model named: (units,).

        They are the logarithms of inverse ranks, moved by a constant.
        """
        is_named = raw > 0
        logits = np.full(raw.shape, UNNAMED_LOGIT, np.float32)
        shift = math.log(2 * max(_LEAST_UNITS, len(raw)))
        logits[is_named] = np.log(raw[is_named]) + shift
        return logits

    def _scores(
        self, query: str, text: str, units: Sequence[Unit], cancelled: Cancelled
    ) -> Scores:
        lines = []
        for number, unit in enumerate(units):
            words = unit.text_with_headings(text).split()
            lines.append(f"[{number}] {' '.join(words)}")
        scores = np.zeros(len(units), np.float32)
        for first, end in _windows(lines, self.window_characters):
            stop_if(cancelled, "between two prompts")
            reply = self._reply(query, lines[first:end])
            numbers = numbers_in(reply, first, end)
            for place, number in enumerate(numbers[: self.most_units], 1):
                scores[number] = 1 / place
        return scores

    def _reply(self, query: str, lines: Sequence[str]) -> str:
        """Return the model's reply, or raise ``OSError`` if it failed every time."""
        closing = (
            "Write one line: the word SENTENCES, a colon, and the numbers of the"
            " sentences with commas between them, the most important first, at most"
            f" {self.most_units}; NONE if no sentence helps."
        )
        sections = {"QUESTION": query, "DOCUMENT": "\n".join(lines)}
        prompt = fenced_prompt(_INSTRUCTIONS, sections, closing)
        reply = reply_or_none(self.asker or Asker(), self._model, prompt)
        if reply is None:
            raise OSError(f"{self.name} did not reply; the same command asks it again")
        return reply


def numbers_in(reply: str, first: int, end: int) -> list[int]:
    """Return the distinct numbers of a reply's last line of numbers, in its order.

    Numbers below ``first``, and from ``end`` on, are ignored.

    Examples
    --------
    >>> from spscanner_lab.rerankers.generative_selection import numbers_in
    >>> numbers_in("They fit. SENTENCES: 7, 3, 7, 99", 0, 10)
    [7, 3]
    """
    lines = _NUMBERS.findall(without_thoughts(reply))
    if not lines:
        return []
    numbers = map(int, re.findall(r"(?<![-\d])\d{1,9}", lines[-1]))
    return [number for number in dict.fromkeys(numbers) if first <= number < end]


def _windows(lines: Sequence[str], limit: int) -> list[tuple[int, int]]:
    """Return ranges of lines of at most so many characters.

    A longer line is alone.
    """
    windows = []
    first = 0
    characters = 0
    for number, line in enumerate(lines):
        if number > first and characters + len(line) > limit:
            windows.append((first, number))
            first = number
            characters = 0
        characters += len(line)
    if lines:
        windows.append((first, len(lines)))
    return windows
