"""Asks a language model for values until a reply has the right form."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spscanner_lab.llm.asking import NoReplyError
from spscanner_lab.llm.fencing import fenced_prompt
from spscanner_lab.synthesis.prompt_files import Prompt
from spscanner_lab.synthesis.reply_form import (
    Field,
    MalformedReplyError,
    form_of_reply,
    read_reply,
)

Values = Mapping[str, Any]

_REASON_FIRST = (
    "Think step by step first: say on the line REASON how you come to your reply, and"
    " check that it keeps to what is asked above."
)


class DroppedError(Exception):
    """A sub-document gives no example.

    The message is one of a few reasons, by which these are counted.
    """


@dataclass(slots=True)
class Conversation:
    """Asks a language model for values, again if replies are malformed.

    Attributes
    ----------
    ask : callable
        Sends a prompt; may raise `NoReplyError`.
    prompts : mapping
        Prompts by name.
    tries : int
        How often a prompt is sent until its reply has the right form.
    malformed : Counter
        What was wrong with replies.
    reasons : bool
        Whether a reply begins with a reason, which is not returned. Connections between
        units are reasons themselves.

    Examples
    --------
    >>> from spscanner_lab.synthesis.conversation import Conversation
    >>> from spscanner_lab.synthesis.prompt_files import read_prompts
    >>> from spscanner_lab.synthesis.reply_form import Field
    >>> conversation = Conversation(lambda prompt: "QUESTION: Why?", read_prompts())
    >>> sections = {"CONNECTION": "Both tell of a ship."}
    >>> conversation.values("link_question", sections, [Field("question", "text")])
    {'question': 'Why?'}
    """

    ask: Callable[[str], str]
    prompts: Mapping[str, Prompt]
    tries: int = 3
    malformed: Counter[str] = field(default_factory=Counter)
    reasons: bool = False

    def values(
        self,
        name: str,
        sections: Mapping[str, str],
        fields: Sequence[Field],
        check: Callable[[Values], object] = lambda values: None,
    ) -> Values:
        """Return the values of the model's reply to the prompt of this name.

        ``check`` raises `MalformedReplyError` for values that have the right form but
        are useless. `DroppedError` if no reply is in the right form.
        """
        wording = self.prompts[name]
        closing = wording.closing
        if self.reasons and name != "link_connections":
            closing = f"{_REASON_FIRST} {closing}"
            fields = [Field("reason", "text"), *fields]
        closing = f"{closing}\n{form_of_reply(fields)}"
        first_prompt = fenced_prompt(wording.instructions, sections, closing)
        prompt = first_prompt
        for attempt in range(1, self.tries + 1):
            try:
                values = read_reply(self.ask(prompt), fields)
                check(values)
                return values
            except NoReplyError as error:
                kind = str(error).partition(":")[0]
                raise DroppedError(f"no reply: {kind}") from None
            except MalformedReplyError as error:
                self.malformed[error.reason] += 1
                reason = error.reason
                # the prompt is changed, so that its reply is stored beside the first
                # one's
                fault = (
                    f"Reply {attempt} could not be used: {json.dumps(str(error))}."
                    " Write another."
                )
                prompt = f"{first_prompt}\n\n{fault}"
        raise DroppedError(f"{name}: {reason}")


def listed(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """List units with numbers from 0, one per line.

    Examples
    --------
    >>> from spscanner_lab.synthesis.conversation import listed
    >>> print(listed("It rained. It snowed.", [(0, 10), (11, 21)]))
    [0] It rained.
    [1] It snowed.
    """
    lines = []
    for number, (start, end) in enumerate(spans):
        words = text[start:end].split()
        lines.append(f"[{number}] {' '.join(words)}")
    return "\n".join(lines)
