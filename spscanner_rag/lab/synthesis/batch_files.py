"""Batch files of providers: requests written for later, replies read back."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any, Literal, get_args

from spscanner_rag.lab.evidence.questions import DataError
from spscanner_rag.lab.llm.language_models import LanguageModel, Usage, usage_of
from spscanner_rag.lab.llm.replies import ReplyFile, digest_of
from spscanner_rag.lab.synthesis.sources import json_objects
from spscanner_rag.text.units import readable

BatchFormat = Literal["openai", "anthropic"]
BATCH_FORMATS: tuple[str, ...] = get_args(BatchFormat)
_REPLY_TOKENS = 2_000
_EXPECTED = "a JSON object of a batch file"


class PendingError(Exception):
    """The prompt has no reply yet; it goes into the next batch."""


@dataclass(slots=True)
class BatchCollector:
    """Answers prompts from the file of replies, and collects those that have none by their digests."""

    replies: ReplyFile
    prompts: dict[str, str] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def ask_one(self, model: LanguageModel, prompt: str) -> str:
        """Return the reply to a prompt; raises `PendingError` if there is none."""
        prompt = readable(prompt)
        digest = digest_of(model.name, prompt)
        if (reply := self.replies.get(digest)) is not None:
            return reply
        with self._lock:
            self.prompts[digest] = prompt
        raise PendingError

    def lines(self, model: str, kind: BatchFormat) -> Iterator[str]:
        """Yield the requests to a model, by the provider's name, as lines of a batch file."""
        for digest, prompt in sorted(self.prompts.items()):
            body: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": prompt}]}
            if kind == "openai":
                body["temperature"] = 0
                request = {"custom_id": digest, "method": "POST", "url": "/v1/chat/completions", "body": body}
            else:
                body |= {"max_tokens": _REPLY_TOKENS, "temperature": 0}
                request = {"custom_id": digest, "params": body}
            yield json.dumps(request) + "\n"


def read_batch(requests: Path, results: Path, model: str, replies: ReplyFile) -> tuple[int, int]:
    """Take a provider's results into the file of replies, and return how many came and failed.

    ``requests`` is the batch file that was sent; ``results`` have the form of OpenAI or of Anthropic. Replies
    that are there already are left. `DataError` for a result whose request is not in the file.
    """
    prompts = {}
    for _, _, record in json_objects(requests, _EXPECTED):
        body = record.get("body") or record.get("params") or {}
        prompts[record.get("custom_id")] = body["messages"][0]["content"]
    came = failed = 0
    for number, _, record in json_objects(results, _EXPECTED):
        prompt = prompts.get(record.get("custom_id"))
        if prompt is None:
            raise DataError(
                f"{results}, line {number}: got the id {record.get('custom_id')!r:.80}, expected one of "
                f"{requests}: give the results of this batch"
            )
        text, usage = _reply(record)
        if text is None:
            failed += 1
        elif replies.get(digest_of(model, prompt)) is None:
            replies.add(model, prompt, reply=text, usage=usage)
            came += 1
    return came, failed


def _reply(record: dict[str, Any]) -> tuple[str | None, Usage | None]:
    """Return the text of a result and its usage; None for a request that failed."""
    try:
        if "result" in record:  # Anthropic
            message = record["result"]["message"]
            text = "".join(block["text"] for block in message["content"] if block.get("type") == "text")
        else:
            message = record["response"]["body"]
            text = message["choices"][0]["message"]["content"]
    except (KeyError, TypeError, IndexError):
        return None, None
    if not isinstance(text, str) or not text.strip():
        return None, None
    return text, usage_of(SimpleNamespace(raw=message.get("usage")))
