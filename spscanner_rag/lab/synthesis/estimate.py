"""What a run will cost, said before anything is spent."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from spscanner_rag.lab.llm.asking import Prices
from spscanner_rag.lab.llm.language_models import LanguageModel, Usage
from spscanner_rag.lab.synthesis.conversation import Conversation, DroppedError
from spscanner_rag.lab.synthesis.prompt_files import Prompt
from spscanner_rag.lab.synthesis.scripted import SCRIPTED
from spscanner_rag.lab.synthesis.strategies.made import QuestionMaker
from spscanner_rag.lab.synthesis.sub_documents import SubDocument
from spscanner_rag.text.token_counts import CountTokens

REPLY_TOKENS = 60
"""Tokens that a reply is taken to have at least; the list of links is longer, and is counted as the stand-in's."""


@dataclass(slots=True)
class Estimate:
    """Counts the requests and tokens of sub-documents, with the scripted model as the one that replies.

    Its prompts are those of a real run, up to the words of questions and connections. A real model refuses, errs
    and finds no link here and there, so that fewer examples come of the same documents; malformed replies cost
    more.
    """

    maker: QuestionMaker
    prompts: Mapping[str, Prompt]
    count_tokens: CountTokens
    sub_documents: int = 0
    requests: int = 0
    usage: Usage = field(default_factory=Usage)

    def add(self, sub: SubDocument) -> None:
        """Count what a sub-document needs."""
        self.sub_documents += 1
        with suppress(DroppedError):
            self.maker.make(sub, Conversation(self._ask, SCRIPTED, self.prompts, tries=1))

    def _ask(self, model: LanguageModel, prompt: str) -> str:
        reply = model(prompt)
        self.requests += 1
        self.usage += Usage(self.count_tokens(prompt), max(REPLY_TOKENS, self.count_tokens(reply)))
        return reply

    def figures(self, prices: Prices) -> dict[str, Any]:
        """The estimate as JSON."""
        return {
            "sub_documents": self.sub_documents,
            "requests": self.requests,
            "prompt_tokens": self.usage.prompt_tokens,
            "reply_tokens": self.usage.reply_tokens,
            "cost": round(prices.cost(self.usage), 6),
        }
