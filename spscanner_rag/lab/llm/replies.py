"""A file of prompts and replies, so that no prompt is asked again after a reply."""

import hashlib
import json
import threading
from pathlib import Path
from typing import Any

from spscanner_rag.files.writing import append_records, complete_lines, parse_json, parse_object
from spscanner_rag.lab.llm.language_models import Usage


def digest_of(model: str, prompt: str) -> str:
    """Return the key of a reply: SHA-256 of model name and prompt, in hexadecimal."""
    return hashlib.sha256(json.dumps([model, prompt]).encode("ascii")).hexdigest()


class ReplyFile:
    r"""A file of prompts and replies, to which each reply is appended as soon as it arrives. Thread-safe.

    Each line is a JSON object ``{"digest", "model", "prompt", "reply", "attempts", "seconds"}``, with
    ``"error"`` instead of ``"reply"`` if the model failed, and with ``"usage"``, ``[prompt tokens, reply
    tokens]``, if it is known. Errors are kept for people to read; the next run asks the prompt again. Memory
    holds the place of each reply, about 100 bytes, not the reply. A last line without its line break, which a
    killed program leaves, is cut off by the next reply. ``ValueError`` for a damaged line. Only one process at
    a time may write it: see `folder_lock`.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._writing = threading.Lock()
        self._places: dict[bytes, int] = {}  # of each reply's line in the file, by its digest
        self.attempts, self.usage = 0, Usage()
        place = 0
        for number, line in complete_lines(self.path):
            self._take(line, number, place)
            place += len(line)

    def __len__(self) -> int:
        """Number of replies, not counting failures."""
        return len(self._places)

    def get(self, digest: str) -> str | None:
        """Return the reply to a prompt, or None if there is none yet."""
        place = self._places.get(bytes.fromhex(digest))
        if place is None:
            return None
        with self.path.open("rb") as file:
            file.seek(place)
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
        """Append a reply, or the error if there is none, and what it used, if that is known."""
        digest = digest_of(model, prompt)
        record: dict[str, Any] = {"digest": digest, "model": model, "prompt": prompt}
        record |= {"error": error} if reply is None else {"reply": reply}
        record |= {"attempts": attempts, "seconds": round(seconds, 3)}
        record |= {} if usage is None else {"usage": list(usage)}
        with self._writing:
            place = append_records(self.path, [record])
            self._count(attempts, usage)
            if reply is not None:
                self._places[bytes.fromhex(digest)] = place

    def _count(self, attempts: int, usage: Usage | None) -> None:
        self.attempts += attempts
        self.usage += usage or Usage()

    def _take(self, line: bytes, number: int, place: int) -> None:
        try:
            record = parse_object(line)
            digest, reply = digest_of(record["model"], record["prompt"]), record.get("reply")
            if digest != record["digest"] or not isinstance(reply, str | None):
                raise ValueError("the digest is not that of its model and prompt")
            self._count(int(record.get("attempts", 1)), Usage(*map(int, record.get("usage", ()))))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{self.path}, line {number}: expected a prompt and its reply, got {line[:60]!r} ({error}); "
                "remove the line, and the prompt is asked again"
            ) from None
        if reply is not None:
            self._places[bytes.fromhex(digest)] = place
