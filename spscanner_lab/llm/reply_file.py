"""A file of prompts and replies, so that no prompt is paid for twice."""

import hashlib
import json
import threading
from pathlib import Path
from typing import Any

from spscanner_lab.llm.replies import Usage
from spscanner_rag.system.json_lines import append_records, complete_lines
from spscanner_rag.system.strict_json import parse_json, parse_object


def digest_of(model: str, prompt: str) -> str:
    """Return the key of a reply: the SHA-256 of model name and prompt, in hexadecimal.

    Examples
    --------
    >>> from spscanner_lab.llm.reply_file import digest_of
    >>> digest_of("gpt-4o-mini", "Who signed it?")[:8]
    '46639b97'
    """
    return hashlib.sha256(json.dumps([model, prompt]).encode("ascii")).hexdigest()


class ReplyFile:
    r"""A thread-safe file to which each reply is appended as soon as it arrives.

    Each line is a JSON object ``{"digest", "model", "prompt", "reply", "attempts",
    "seconds"}``, with ``"error"`` instead of ``"reply"`` if the model failed, and with
    ``"usage"``, ``[prompt tokens, reply tokens]``, if it is known. Errors are kept for
    people to read; the next run asks the prompt again. Memory holds the place of each
    reply, about 100 bytes, but not the reply. A last line without a line break, which a
    killed program leaves, is cut off before the next reply is written. ``ValueError``
    for a damaged line. Only one process at a time may write the file: see
    `folder_lock`.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.attempts = 0
        self.usage = Usage()
        self._writing = threading.Lock()
        # of each reply's line in the file, by its digest
        self._offsets: dict[bytes, int] = {}
        offset = 0
        for number, line in complete_lines(self.path):
            self._note(line, number, offset)
            offset += len(line)

    def __len__(self) -> int:
        """The number of replies, not counting failures."""
        return len(self._offsets)

    def get(self, digest: str) -> str | None:
        """Return the reply to a prompt, or None if there is none yet."""
        offset = self._offsets.get(bytes.fromhex(digest))
        if offset is None:
            return None
        with self.path.open("rb") as file:
            file.seek(offset)
            reply: str = parse_json(file.readline())["reply"]
        return reply

    def add(
        self,
        model: str,
        prompt: str,
        *,
        reply: str | None = None,
        error: str | None = None,
        attempts: int = 1,
        seconds: float = 0.0,
        usage: Usage | None = None,
    ) -> None:
        """Append a reply, or the error if there is none, with its usage if known."""
        digest = digest_of(model, prompt)
        record: dict[str, Any] = {"digest": digest, "model": model, "prompt": prompt}
        if reply is None:
            record["error"] = error
        else:
            record["reply"] = reply
        record["attempts"] = attempts
        record["seconds"] = round(seconds, 3)
        if usage is not None:
            record["usage"] = list(usage)
        with self._writing:
            offset = append_records(self.path, [record])
            self.attempts += attempts
            self.usage += usage or Usage()
            if reply is not None:
                self._offsets[bytes.fromhex(digest)] = offset

    def _note(self, line: bytes, number: int, offset: int) -> None:
        """Count a line of the file, and note where it is if it has a reply."""
        try:
            record = parse_object(line)
            digest = digest_of(record["model"], record["prompt"])
            reply = record.get("reply")
            if digest != record["digest"] or not isinstance(reply, str | None):
                raise ValueError("the digest is not that of its model and prompt")
            self.attempts += int(record.get("attempts", 1))
            self.usage += Usage(*map(int, record.get("usage", ())))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{self.path}, line {number}: expected a prompt and its reply, got"
                f" {line[:60]!r} ({error}); remove the line to ask the prompt again"
            ) from None
        if reply is not None:
            self._offsets[bytes.fromhex(digest)] = offset
