"""Asking a language model while its prompts and tokens are counted, those with a kept reply included."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from spscanner_rag.lab.llm.asking import Asker, Reply
from spscanner_rag.lab.llm.language_models import LanguageModel
from spscanner_rag.lab.llm.replies import digest_of
from spscanner_rag.lab.llm.usage import Usage
from spscanner_rag.text.token_counts import CountTokens
from spscanner_rag.text.units import readable


@dataclass(slots=True)
class Asked:
    """Different prompts that a model was asked, and their tokens and those of the replies."""

    prompts: int = 0
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedAsker(Asker):
    """An `Asker` that counts what each model is asked.

    A prompt whose reply was kept counts too, so that a run that resumes has the counts of one that was never
    interrupted.

    Attributes
    ----------
    count_tokens : callable
        Counts the tokens of prompts and replies.
    asked : dict
        The counts of each model.
    """

    count_tokens: CountTokens
    asked: dict[LanguageModel, Asked] = field(default_factory=dict)

    def ask(self, model: LanguageModel, prompts: Iterable[str]) -> list[Reply]:
        """Ask a model as `Asker.ask` does, and count."""
        own = self.asked.setdefault(model, Asked())
        seen: set[str] = set()
        first: list[int] = []  # places of the prompts that were not there before

        def counted() -> Iterator[str]:
            for place, prompt in enumerate(prompts):
                digest = digest_of(model.name, readable(prompt))
                if digest not in seen:
                    seen.add(digest)
                    first.append(place)
                    own.prompts += 1
                    own.usage += Usage(self.count_tokens(prompt), 0)
                yield prompt

        replies = Asker.ask(self, model, counted())
        own.usage += Usage(0, sum(self.count_tokens(replies[place].text or "") for place in first))
        return replies
