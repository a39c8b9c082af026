"""The options of a command that asks language models: prompts, limits and prices."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spscanner_rag.apps.cli.declaring import option

if TYPE_CHECKING:
    from spscanner_lab.llm.budget import Budget


@dataclass(frozen=True, kw_only=True)
class SpendingOptions:
    """What models are asked with, and how much that may cost.

    Examples
    --------
    >>> options = SpendingOptions(
    ...     prompts=None,
    ...     max_requests=10,
    ...     max_cost=None,
    ...     price_prompt=2.5,
    ...     price_reply=10,
    ...     requests_per_minute=None,
    ... )
    >>> options.budget().max_requests
    10
    """

    prompts: Path | None = option(
        None, "Folder of prompts, which replace the package's by name.", "DIR"
    )
    max_requests: int | None = option(
        None, "Most requests, including the folder's earlier runs.", lowest=0
    )
    max_cost: float | None = option(
        None, "Most that requests may cost, by --price-*.", lowest=0
    )
    price_prompt: float = option(
        0.0, "Price of a million prompt tokens, in your currency.", lowest=0
    )
    price_reply: float = option(0.0, "Price of a million reply tokens.", lowest=0)
    requests_per_minute: float | None = option(
        None, "Most requests per minute; default: no limit.", lowest=1
    )

    def budget(self) -> "Budget":
        """The limits, for all models of a run together."""
        from spscanner_lab.llm.budget import Budget, Prices

        return Budget(
            prices=Prices(self.price_prompt, self.price_reply),
            max_requests=self.max_requests,
            max_cost=self.max_cost,
            per_minute=self.requests_per_minute,
        )
