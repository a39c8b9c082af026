"""Asks for one reply in one form, again if it is malformed, and counts what was wrong."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spscanner_rag.lab.llm.asking import NoReplyError
from spscanner_rag.lab.llm.language_models import LanguageModel, Structured
from spscanner_rag.lab.synthesis.prompt_files import Prompt
from spscanner_rag.lab.synthesis.reply_form import (
    Field,
    Form,
    MalformedReplyError,
    read,
    schema,
    stated,
)

Values = Mapping[str, Any]


class DroppedError(Exception):
    """No example comes of this sub-document; the message is one of a few reasons, by which these are counted."""


Ask = Callable[[LanguageModel, str], str]
"""Return the reply of a model to a prompt, as `Asker.ask_one` does."""


@dataclass(slots=True)
class Conversation:
    """How a language model is asked for values.

    Attributes
    ----------
    ask : callable
        Sends a prompt, as `Asker.ask_one` does.
    model : LanguageModel
    prompts : mapping
        From `read_prompts`.
    form : str
        "json" or "keywords".
    structured : callable, optional
        From a JSON schema to a function that sends a prompt to a model that keeps to it.
    tries : int
        How often the model is asked for a reply in the right form.
    malformed : Counter
        What was wrong with replies, whether a later try was right or not. Each sub-document has its own.
    """

    ask: Ask
    model: LanguageModel
    prompts: Mapping[str, Prompt]
    form: Form = "keywords"
    structured: Structured | None = None
    tries: int = 3
    malformed: Counter[str] = field(default_factory=Counter)

    def reply(self, prompt: str) -> str:
        """Return the reply to a prompt in words."""
        return self.ask(self.model, prompt)

    def values(
        self,
        name: str,
        sections: Mapping[str, str],
        fields: Sequence[Field],
        check: Callable[[Values], None] = lambda values: None,
    ) -> Values:
        """The values that the model replies with.

        ``check`` raises `MalformedReplyError` for values that are in the right form and still useless; they count
        as malformed. Raises `DroppedError` if every try is malformed, or if the model does not reply.
        """
        prompt = first = self.prompts[name].filled(sections, stated(fields, self.form))
        model = self.model
        if self.structured is not None and self.form == "json":
            model = replace(model, ask=self.structured(schema(fields, name)))
        for attempt in range(1, self.tries + 1):
            try:
                values = read(self.ask(model, prompt), fields, self.form)
                check(values)
                return values
            except NoReplyError as error:
                raise DroppedError(f"no reply: {str(error).partition(':')[0]}") from None
            except MalformedReplyError as error:
                self.malformed[error.reason] += 1
                reason = error.reason
                # another prompt, so that the reply to the first is kept beside the reply to this one
                prompt = (
                    f"{first}\n\nReply {attempt} could not be used: {json.dumps(str(error))}. Write another."
                )
        raise DroppedError(f"{name}: {reason}")


def listed(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """Units with numbers from 0, a line each."""
    return "\n".join(
        f"[{number}] {' '.join(text[slice(*span)].split())}" for number, span in enumerate(spans)
    )
