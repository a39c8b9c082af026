"""`RemoteScanner`: a scanner behind ``spscanner serve``, here or elsewhere."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property, partial
from hashlib import sha256
from io import BytesIO
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.scorers import (
    Cancelled,
    Progress,
    Read,
    Request,
    ScanCancelled,
    Scorer,
    UnitScores,
    check_query,
    check_read,
    checked_logits,
    never,
    words_together,
)
from spscanner_rag.system.install_hints import import_extra
from spscanner_rag.text.block_segmentation import segment_blocks
from spscanner_rag.text.blocks import Block
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.surrogates import replace_surrogates
from spscanner_rag.text.units import Unit, units_from_spans

if TYPE_CHECKING:
    import httpx

    from spscanner_rag.lexical.collection_index import CollectionIndex

T = TypeVar("T")
Body = dict[str, Any] | bytes | None

# Larger calls are split into requests of about this size.
BATCH_CHARACTERS = 2_000_000
BATCH_TEXTS = 500
_AGAIN = frozenset({429, 503})
_POLL_SECONDS = 0.05

_REPLY_BYTES = 2**16  # most bytes of an error, or of a reply apart from its data
_LOGIT_BYTES = 32  # most bytes of a number in JSON
_UNIT_CHARACTERS = 10  # how many characters a unit adds to the size of a request
# most bytes of a one-character unit in JSON: two numbers and an escape
_CHARACTER_BYTES = 64


class RemoteError(OSError):
    """The server could not be reached, refused, or sent an invalid reply.

    The message has its address.
    """


class RemoteScanner(Scorer):
    """Sends texts to a server, and scores them as it does.

    Its results are those of the server's scanner.

    Several threads and event loops may use it at once.

    Parameters
    ----------
    url : str
        Address of the server, such as "http://127.0.0.1:8000".
    token : str, optional
        The server's token. Default: the environment variable ``SPSCANNER_TOKEN``, if it
        is set. The token never appears in a repr or a pickle, but a copy has it.
    timeout : float, default 180
        Seconds to wait for a complete answer, retries included; set it above the
        server's own limit.
    retries : int, default 5
        How often a request is sent again after 429 or 503. The wait doubles each time,
        unless the server says how long to wait. Other failures are not retried.
    read : "auto", "all" or float, optional
        What the server reads of a text, as for `Scanner.scan`. Default: as it was
        started.

    Examples
    --------
    `spscanner serve` must run at the address.

    >>> scorer = RemoteScanner("http://127.0.0.1:8000")
    >>> units = scorer.units_of(text)  # doctest: +SKIP
    >>> logits = scorer.score_units("Who signed it?", text, units)  # doctest: +SKIP
    """

    name = "remote"
    calls_at_once = 64
    """How many asynchronous calls a framework class may have waiting for answers;
    the server queues them."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout: float = 180.0,
        retries: int = 5,
        read: Read | None = None,
    ) -> None:
        self.url = _address(url)
        self.read = None if read is None else check_read(read)
        if not timeout > 0 or retries < 0:
            raise ValueError(
                f"got timeout={timeout}, retries={retries}; expected above 0, and at"
                " least 0"
            )
        import_extra("httpx", "RemoteScanner", "remote")
        self.timeout = timeout
        self.retries = retries
        if token is None:
            token = os.environ.get("SPSCANNER_TOKEN", "")
        self._token = token

    @cached_property
    def _model(self) -> dict[str, Any]:
        with self._replied("GET", "/v1/models") as reply:
            (model,) = reply["data"]
            known_types = isinstance(model["uses_collection"], bool)
            if not known_types or not isinstance(model["segmenter"], str):
                raise ValueError(f"got {model!r:.80}")
            return dict(model)

    def served_model(self) -> Mapping[str, Any]:
        """What the server says of its model.

        `RemoteError` if it cannot be reached.
        """
        return self._model

    @property
    def uses_collection(self) -> bool:
        """True if logits depend on the other texts of a collection."""
        return bool(self._model["uses_collection"])

    def units_of(self, text: str, blocks: Sequence[Block] = ()) -> list[Unit]:
        """Cut a text into the units of the server's checkpoint.

        Sentences are cut here, other units by the server.
        """
        if blocks:
            return segment_blocks(text, blocks, self.units_of)
        plain = SentenceSegmenter()
        if self._model["segmenter"] == plain.name:
            return plain.segment(text)
        most_bytes = _REPLY_BYTES + _CHARACTER_BYTES * len(text)
        with self._replied(
            "POST", "/v1/segment", {"texts": [text]}, most_bytes
        ) as reply:
            (units,) = reply["units"]
            return _units(units, text)

    def count_tokens(self, text: str) -> int:
        """Count the tokens of a text with the server's tokenizer."""
        with self._replied("POST", "/v1/count_tokens", {"texts": [text]}) as reply:
            (count,) = reply["tokens"]
            if type(count) is not int or not 0 <= count <= 8 * len(text) + 8:
                raise ValueError(f"got {count!r:.80} tokens of {len(text)} characters")
            return count

    def score_units(
        self, query: str, text: str, units: Sequence[Unit]
    ) -> NDArray[np.float32]:
        """Logits of the units of one text: (units,)."""
        return self.score_units_many([(query, text, units)])[0].logits

    def score_units_many(
        self,
        requests: Sequence[Request],
        *,
        together: bool = False,
        collection: CollectionIndex | None = None,
        progress: Progress | None = None,
        cancelled: Cancelled = never,
    ) -> list[UnitScores]:
        """Logits of the units of several texts, (units,) each.

        With ``together``, the texts are one collection.

        The words of a larger ``collection`` are sent once per call, unless the server
        has them. ``progress`` is called with the number of characters done and of all
        texts. ``cancelled`` is called while an answer is awaited; if it returns True,
        the connection is closed, the server stops reading, and `ScanCancelled` is
        raised. `RemoteError` if the server cannot be reached, refuses, or is still busy
        after all retries.
        """
        work = self.ascore_units_many(
            requests, together=together, collection=collection, progress=progress
        )
        return self._wait(work, cancelled)

    async def ascore_units_many(
        self,
        requests: Sequence[Request],
        *,
        together: bool = False,
        collection: CollectionIndex | None = None,
        progress: Progress | None = None,
    ) -> list[UnitScores]:
        """`score_units_many` for use with await.

        Cancelling the task cancels the request.
        """
        for query, _, _ in requests:
            check_query(query)
        batches = list(self._batches(requests))
        if together and collection is None and len(batches) > 1:
            collection = await asyncio.to_thread(
                words_together, self, [units for _, _, units in requests]
            )
        digest = None if collection is None else await self._sent(collection)
        total = sum(len(text) for _, text, _ in requests)
        done = 0
        scores: list[UnitScores] = []
        for batch in batches:
            body: dict[str, Any] = {
                "requests": [_as_json(request) for request in batch],
                "together": together,
                "collection": digest,
            }
            if self.read is not None:
                body["read"] = self.read
            counts = [len(units) for _, _, units in batch]
            most_bytes = _REPLY_BYTES + _LOGIT_BYTES * (sum(counts) + len(counts))
            reply = await self._ask("POST", "/v1/score", body, most_bytes)
            with self._checked("/v1/score"):
                for values, count in zip(reply["logits"], counts, strict=True):
                    scores.append(UnitScores(checked_logits(self, values, count)))
            done += sum(len(text) for _, text, _ in batch)
            if progress is not None:
                progress(done, total)
        return scores

    def _batches(self, requests: Sequence[Request]) -> Iterator[list[Request]]:
        batch: list[Request] = []
        size = 0
        for request in requests:
            query, text, units = request
            characters = len(query) + len(text) + _UNIT_CHARACTERS * len(units)
            is_full = size + characters > BATCH_CHARACTERS or len(batch) >= BATCH_TEXTS
            if batch and is_full:
                yield batch
                batch = []
                size = 0
            batch.append(request)
            size += characters
        if batch:
            yield batch

    async def _sent(self, collection: CollectionIndex) -> str:
        buffer = BytesIO()
        # The stub of `savez` takes ``allow_pickle`` too.
        np.savez(buffer, **collection.to_arrays())  # type: ignore[arg-type]
        content = buffer.getvalue()
        digest = sha256(content).hexdigest()
        await self._ask("PUT", f"/v1/collections/{digest}", content)
        return digest

    def _wait(self, work: Coroutine[Any, Any, T], cancelled: Cancelled) -> T:
        """Run work in a new event loop, and stop it if the caller wants to."""

        async def watched() -> T:
            task = asyncio.ensure_future(work)
            while not (await asyncio.wait([task], timeout=_POLL_SECONDS))[0]:
                if cancelled():  # the loop cancels the task when it ends
                    raise ScanCancelled(f"cancelled while waiting for {self.url}")
            return task.result()

        def run() -> T:
            with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
                return runner.run(watched())

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return run()
        # This thread already runs a loop, as in a notebook.
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(run).result()

    @contextmanager
    def _replied(
        self, method: str, path: str, body: Body = None, most_bytes: int = _REPLY_BYTES
    ) -> Iterator[Any]:
        """Yield a reply.

        Errors in the block mean that its form is wrong, and become `RemoteError`.
        """
        reply = self._wait(self._ask(method, path, body, most_bytes), never)
        with self._checked(path):
            yield reply

    async def _ask(
        self, method: str, path: str, body: Body = None, most_bytes: int = _REPLY_BYTES
    ) -> Any:  # noqa: ANN401 - JSON
        """Send a request, again while the server is busy, and return the reply's JSON.

        All attempts together may take `timeout` seconds, and a reply ``most_bytes``:
        the server is not trusted.
        """
        import httpx

        headers = {"accept-encoding": "identity"}
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        if isinstance(body, dict):  # httpx cannot encode a lone surrogate as JSON
            headers["content-type"], body = (
                "application/json",
                json.dumps(body).encode(),
            )
        end = asyncio.get_running_loop().time() + self.timeout
        try:
            # A client for each call: connections cost little compared to reading, and
            # none outlives its call.
            async with (
                asyncio.timeout_at(end),
                httpx.AsyncClient(
                    base_url=self.url, timeout=None, headers=headers
                ) as client,
            ):
                for attempt in range(self.retries + 1):
                    answer, reply = await _reply(client, method, path, body, most_bytes)
                    pause = _pause(attempt, answer.headers.get("retry-after"))
                    late = asyncio.get_running_loop().time() + pause > end
                    if (
                        answer.status_code not in _AGAIN
                        or attempt == self.retries
                        or late
                    ):
                        break
                    await asyncio.sleep(pause)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise RemoteError(
                f"{self.url}{path}: {_described(error)}; is `spscanner serve`"
                " running there?"
            ) from None
        except TimeoutError:
            raise RemoteError(
                f"{self.url}{path} did not answer within {self.timeout:g} s"
            ) from None
        if not answer.is_success:
            raise RemoteError(
                f"{self.url}{path} answered {answer.status_code}: {_message(reply)}"
            )
        with self._checked(path):
            return json.loads(reply) if reply or method != "PUT" else None

    @contextmanager
    def _checked(self, path: str) -> Iterator[None]:
        try:
            yield
        except (
            ValueError,
            TypeError,
            KeyError,
            IndexError,
            OverflowError,
            RecursionError,
        ) as error:
            raise RemoteError(
                f"{self.url}{path}: the reply is not from `spscanner serve`"
                f" ({_described(error)}); check the address"
            ) from None

    def with_read(self, read: Read) -> Self:
        """Return a scanner of the same server, which reads as told.

        See `Scorer`.

        A share is refused by a server whose checkpoint has no sentence scan.
        """
        scanner = self.__copy__()
        scanner.read = check_read(read)
        return scanner

    def __reduce__(self) -> tuple[Any, ...]:  # without the token
        options: dict[str, Any] = {"timeout": self.timeout, "retries": self.retries}
        options["read"] = self.read
        return partial(type(self), **options), (self.url,)

    def __copy__(self) -> Self:
        return type(self)(
            self.url,
            token=self._token,
            timeout=self.timeout,
            retries=self.retries,
            read=self.read,
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.__copy__()

    def __repr__(self) -> str:
        return f"RemoteScanner({self.url!r})"


def _address(url: str) -> str:
    """Return an address without a final slash.

    ``ValueError`` if it is not one, or has a user or a password.
    """
    try:
        parts = urlsplit(url)
        if (
            parts.scheme not in ("http", "https")
            or not parts.hostname
            or set("?#@") & set(url)
        ):
            raise ValueError
        parts.port  # noqa: B018
    except ValueError:
        shown = _shown(url.rpartition("@")[2])
        raise ValueError(
            f"url: got {shown!r:.80}; expected an address such as"
            " 'http://127.0.0.1:8000', without a password"
        ) from None
    return url.rstrip("/")


async def _reply(
    client: httpx.AsyncClient,
    method: str,
    path: str,
    body: bytes | None,
    most_bytes: int,
) -> tuple[httpx.Response, bytes]:
    """Send once.

    ``ValueError`` for a reply that is compressed or longer than a valid one can be.
    """
    async with client.stream(method, path, content=body) as answer:
        most_bytes = most_bytes if answer.is_success else _REPLY_BYTES
        encoding = answer.headers.get("content-encoding", "identity")
        if encoding != "identity":
            raise ValueError(
                f"the reply is compressed ({encoding}), which was not requested"
            )
        reply = bytearray()
        async for part in answer.aiter_raw():
            reply += part
            if len(reply) > most_bytes:
                break
        if answer.is_success and len(reply) > most_bytes:
            raise ValueError(
                f"the reply is longer than {most_bytes} bytes, the most for a valid one"
            )
        return answer, bytes(reply[:most_bytes])


def _units(listed: Sequence[Sequence[Any]], text: str) -> list[Unit]:
    """Read the units of a reply.

    ``ValueError`` if they overlap, exceed the text, or are not units.
    """
    units = [Unit(start, end, model_text) for start, end, model_text in listed]
    before = 0
    for start, end, model_text in units:
        if (
            type(start) is not int
            or type(end) is not int
            or not isinstance(model_text, str)
        ):
            raise ValueError("expected units of two numbers and a string")
        if not before <= start < end <= len(text):
            raise ValueError(
                f"the unit {start} to {end} overlaps the previous one or exceeds the"
                " text"
            )
        before = end
    return units


def _as_json(request: Request) -> dict[str, Any]:
    """A request for the server, whose units have no text that it can cut itself."""
    query, text, units = request
    usual_units = units_from_spans(text, [(unit.start, unit.end) for unit in units])
    described: list[tuple[int, int, str | None]] = []
    for unit, usual in zip(units, usual_units, strict=True):
        model_text = None
        if unit != usual:
            model_text = replace_surrogates(unit.model_text)
        described.append((unit.start, unit.end, model_text))
    return {
        "query": replace_surrogates(query),
        "text": replace_surrogates(text),
        "units": described,
    }


def _pause(attempt: int, retry_after: str | None) -> float:
    """Seconds until the next attempt.

    Random, so that clients refused together do not retry together.
    """
    seconds: float = 0.25 * 2**attempt
    if retry_after is not None and retry_after.isascii() and retry_after.isdigit():
        seconds = float(retry_after[:5])
    return min(seconds, 60.0) * random.uniform(1.0, 1.5)


def _described(error: Exception) -> str:
    return f"{type(error).__name__} {_shown(str(error))[:200]}"


def _message(reply: bytes) -> str:
    try:
        message = str(json.loads(reply)["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        message = reply.decode("utf-8", "replace")
    return _shown(message[:500])[:300]


def _shown(text: str) -> str:
    """Text of an untrusted source on one line, without control characters."""
    characters = []
    for character in text:
        characters.append(character if character.isprintable() else " ")
    return " ".join("".join(characters).split())
