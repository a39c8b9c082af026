"""Keeps to a token budget what a framework sends of results to a language model."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Generic

from spscanner_rag.results import Selection
from spscanner_rag.retrieval.answers import Answer, Result
from spscanner_rag.retrieval.host import Item

Prompt = Callable[[str, list[Any]], str]
"""Makes the text for a language model from a query and its results."""

SENT_SEPARATOR = "\n\n"  # what frameworks write between two results
BUDGETS_TRIED = 10  # budgets for the text alone, until what is sent fits `max_tokens`


@dataclass
class ModelBudget(Generic[Item, Result]):
    """The tokens that the results of a query may have, with all that is sent with them.

    Parameters
    ----------
    query : str
        The query.
    max_tokens : int
        The largest number of tokens.
    count_tokens : callable
        Counts the tokens of a text.
    prompt : callable, optional
        Makes the text for a language model. Default: results are sent one by one.
    """

    query: str
    max_tokens: int
    count_tokens: Callable[[str], int]
    prompt: Prompt | None

    def __post_init__(self) -> None:
        # Most sentences are counted several times.
        self._count_once = cache(self.count_tokens)

    def fit(
        self,
        answer: Answer[Item, Result],
        selection: Selection,
        answer_of: Callable[[Selection], Answer[Item, Result]],
    ) -> Answer[Item, Result]:
        """Return the answer, or a smaller one if it exceeds the budget.

        Parameters
        ----------
        answer : Answer
            What ``selection`` selects.
        selection : Selection
            Its ``max_tokens`` is lowered until all that is sent fits.
        answer_of : callable
            Makes the answer of another selection.

        Raises
        ------
        ValueError
            If the prompt alone exceeds the budget.
        """
        if self._sends_text_alone(answer) or self._tokens(answer) <= self.max_tokens:
            return answer
        fitting = None
        low = 0
        high = self.max_tokens
        for _ in range(BUDGETS_TRIED):
            text_budget = (low + high) // 2
            if text_budget == low:
                break
            smaller = answer_of(
                replace(
                    selection,
                    max_tokens=text_budget,
                    count_tokens=self._count_once,
                )
            )
            if self._tokens(smaller) <= self.max_tokens:
                fitting = smaller
                low = text_budget
            else:
                high = text_budget
        if fitting is None:
            return self._empty(answer)
        return fitting

    def _sends_text_alone(self, answer: Answer[Item, Result]) -> bool:
        """Whether nothing is sent but the texts, which the selection has counted."""
        if self.prompt is not None:
            return False
        return all(
            answer.text_for_model(result) == answer.content(result)
            for result in answer.results
        )

    def _tokens(self, answer: Answer[Item, Result]) -> int:
        if self.prompt is not None:
            return self.count_tokens(self.prompt(self.query, list(answer.results)))
        total = 0
        for result in answer.results:
            total += self._count_once(answer.text_for_model(result) + SENT_SEPARATOR)
        return total

    def _empty(self, answer: Answer[Item, Result]) -> Answer[Item, Result]:
        answer.results.clear()
        tokens = self._tokens(answer)
        if tokens > self.max_tokens:
            raise ValueError(
                f"max_tokens: got {self.max_tokens}, but the prompt has {tokens}"
                " without results; expected more, or a shorter question"
            )
        return answer
