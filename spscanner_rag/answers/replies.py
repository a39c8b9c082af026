"""Every prompt and reply in a file, so that what was asked once is not asked again."""

import hashlib
import json
import os
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

if sys.platform != "win32":
    import fcntl


class ReplyFileError(ValueError):
    """A file of replies that cannot be used; names file, line and reason."""


def digest_of(model: str, prompt: str) -> str:
    """What a prompt to a model is known by: SHA-256 of both, in hexadecimal."""
    return hashlib.sha256(json.dumps([model, prompt]).encode("ascii")).hexdigest()


class ReplyFile:
    r"""The prompts that were asked and what came back, one JSON object a line, appended as it comes.

    ``{"digest", "model", "prompt", "reply", "attempts", "seconds"}``, with ``"error"`` in the place of
    ``"reply"`` where the model failed. A failure is kept for the reader; it is asked again the next time.
    Several threads may use it at once, and it may serve several models.

    Parameters
    ----------
    path : Path
        Made with its folder if it is not there. A last line without its ``\n``, which a kill leaves, is cut off.

    Raises
    ------
    ReplyFileError
        If another process has it open (not noticed on Windows), or a line is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._replies: dict[str, str] = {}  # without the prompts, which may be whole documents
        self._file = self.path.open("a+b", buffering=0)
        try:
            self._lock_file()
            self._read()
        except BaseException:
            self._file.close()
            raise

    def __len__(self) -> int:
        """How many replies it holds, failures not counted."""
        return len(self._replies)

    def get(self, digest: str) -> str | None:
        """The reply to a prompt, or None if there is none yet."""
        return self._replies.get(digest)

    def add(
        self,
        model: str,
        prompt: str,
        *,
        reply: str | None = None,
        error: str | None = None,
        attempts: int = 1,
        seconds: float = 0.0,
    ) -> None:
        """Append a reply, or the error that came in its place."""
        digest = digest_of(model, prompt)
        record: dict[str, Any] = {"digest": digest, "model": model, "prompt": prompt}
        record |= {"error": error} if reply is None else {"reply": reply}
        record |= {"attempts": attempts, "seconds": round(seconds, 3)}
        line = memoryview(json.dumps(record).encode("ascii") + b"\n")
        with self._lock:
            self._write(line)
            if reply is not None:
                self._replies[digest] = reply

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, line: memoryview) -> None:
        whole = os.fstat(self._file.fileno()).st_size
        try:
            while line:
                line = line[self._file.write(line) :]
        except BaseException:  # a full disk: leave no half line for the next one to be glued to
            self._file.truncate(whole)
            raise

    def _lock_file(self) -> None:
        if sys.platform == "win32":
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ReplyFileError(
                f"{self.path} is in use by another run; wait for it, or give another file"
            ) from None

    def _read(self) -> None:
        self._file.seek(0)
        whole = 0
        # Through a buffered reader of its own: the file itself has none.
        with os.fdopen(os.dup(self._file.fileno()), "rb") as lines:
            for number, line in enumerate(lines, 1):
                if not line.endswith(b"\n"):
                    self._file.truncate(whole)
                    break
                self._take(line, number)
                whole += len(line)

    def _take(self, line: bytes, number: int) -> None:
        try:
            record = json.loads(line)
            digest, reply = digest_of(record["model"], record["prompt"]), record.get("reply")
            if digest != record["digest"] or not isinstance(reply, str | None):
                raise ValueError("the digest is not that of its model and prompt")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ReplyFileError(
                f"{self.path}, line {number}: expected a prompt and its reply, got {line[:60]!r} ({error}); "
                "take the line out, and it is asked again"
            ) from None
        if reply is not None:
            self._replies[digest] = reply
