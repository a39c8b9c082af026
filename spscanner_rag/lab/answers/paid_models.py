"""Models with one budget and one file of replies, which stop together when asking again is of no use."""

import threading
from dataclasses import dataclass, field

from spscanner_rag.lab.llm.failures import LastingFailureError
from spscanner_rag.lab.llm.language_models import LanguageModel
from spscanner_rag.lab.llm.metered import MeteredModel
from spscanner_rag.lab.llm.replies import ReplyFile
from spscanner_rag.lab.llm.spending import BudgetSpentError, Spending
from spscanner_rag.text.token_counts import CountTokens


@dataclass(slots=True, kw_only=True)
class PaidModels:
    """A budget of requests for several models.

    Attributes
    ----------
    replies : ReplyFile
        Keeps prompts, replies and usage; what it has counts towards the budget.
    count_tokens : callable
        Counts the tokens of replies that do not report their usage.
    max_requests : int, optional
        Most requests, failed ones included.
    stopped : str
        Why no model is asked any more: the budget is spent, or the provider refuses every request. Empty while
        asking goes on.
    """

    replies: ReplyFile
    count_tokens: CountTokens
    max_requests: int | None = None
    stopped: str = ""
    _spending: Spending = field(init=False)
    _stop: threading.Event = field(default_factory=threading.Event, init=False)

    def __post_init__(self) -> None:
        self._spending = Spending(
            max_requests=self.max_requests, requests=self.replies.attempts, usage=self.replies.usage
        )

    def paid(self, model: LanguageModel) -> LanguageModel:
        """A model with the same name that is asked within the budget, and again after failures that pass."""
        metered = MeteredModel(
            model=model,
            replies=self.replies,
            spending=self._spending,
            count_tokens=self.count_tokens,
            stop=self._stop,
        )

        def ask(prompt: str) -> str:
            try:
                return metered.ask(prompt)
            except (BudgetSpentError, LastingFailureError) as error:
                self.stopped = self.stopped or str(error)
                self._stop.set()
                raise

        return LanguageModel(model.name, ask)
