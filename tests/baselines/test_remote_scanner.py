"""A remote scanner equals the local one, waits for a busy server, reports errors."""

import asyncio
import copy
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from spscanner_rag import Scanner
from spscanner_rag.apps.serving.app import create_app
from spscanner_rag.baselines import RemoteScanner, remote_scanner
from spscanner_rag.baselines.remote_scanner import RemoteError
from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.scorers import ScanCancelled, Scorer
from spscanner_rag.text.units import Unit
from tests.apps.serving.conftest import running
from tests.attack.test_remote import Written, answering, reply

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])

QUERY = "Who signed the treaty?"
TEXTS = [
    "The bell rang. It rained for a week.",
    "The keeper wrote the date in the book. The captain signed the treaty and left.",
    "The well was dry. The treaty was never signed by the keeper. He left \udfff.",
]
TOKEN = "a-token"


@pytest.fixture(scope="module")
def address(tiny_scanner: Scanner) -> Iterator[str]:
    with running(create_app(tiny_scanner, token=TOKEN)) as url:
        yield url


@pytest.fixture
def remote(address: str) -> RemoteScanner:
    return RemoteScanner(address, token=TOKEN)


def cut(scanner: Scanner) -> list[tuple[str, str, Any]]:
    return [(QUERY, text, scanner.units_of(text)) for text in TEXTS]


def test_what_is_read_is_checked_here_and_kept_in_copies() -> None:
    scanner = RemoteScanner("http://127.0.0.1:1", read="all")
    assert copy.copy(scanner).read == "all"
    assert pickle.loads(pickle.dumps(scanner)).read == "all"
    assert scanner.with_read(0.2).read == 0.2
    assert scanner.read == "all"
    with pytest.raises(ValueError, match=r"read: got 'half'; expected \"auto\""):
        RemoteScanner("http://127.0.0.1:1", read="half")  # type: ignore[arg-type]


@pytest.mark.parametrize(("read", "sent"), [(None, []), ("all", ["all"])])
def test_what_is_read_is_sent_only_if_it_is_given(
    read: Any, sent: list[object], address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = RemoteScanner(address, token=TOKEN, read=read)
    bodies: list[Any] = []
    ask = RemoteScanner._ask

    async def noted(own: RemoteScanner, *arguments: Any) -> Any:
        bodies.append(arguments[2])
        return await ask(own, *arguments)

    monkeypatch.setattr(RemoteScanner, "_ask", noted)
    remote.score_units(QUERY, TEXTS[0], [Unit(0, 14, TEXTS[0][:14])])
    assert [body["read"] for body in bodies if body and "read" in body] == sent


def test_it_scores_as_the_scanner_behind_it(
    remote: RemoteScanner, tiny_scanner: Scanner
) -> None:
    assert isinstance(remote, Scorer)
    for text in TEXTS:
        units = tiny_scanner.units_of(text)
        assert remote.units_of(text) == units
        np.testing.assert_allclose(
            remote.score_units(QUERY, text, units),
            tiny_scanner.score_units(QUERY, text, units),
            atol=1e-4,
        )
        assert remote.count_tokens(text) == tiny_scanner.count_tokens(text)
    assert remote.uses_collection == tiny_scanner.uses_collection


@pytest.mark.parametrize("batch_texts", [500, 1])
@pytest.mark.parametrize("kind", ["apart", "together", "collection"])
def test_collections(
    remote: RemoteScanner,
    tiny_scanner: Scanner,
    kind: str,
    batch_texts: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote_scanner, "BATCH_TEXTS", batch_texts)
    requests = cut(tiny_scanner)
    options: dict[str, Any] = {"together": kind == "together"}
    if kind == "collection":
        others = tiny_scanner.units_of("Treaties are signed. Captains are not keepers.")
        cuts = [others, *(units for _, _, units in requests)]
        options["collection"] = CollectionIndex.of(
            [unit.model_text for unit in units] for units in cuts
        )
    expected = tiny_scanner.score_units_many(requests, **options)
    got = remote.score_units_many(requests, **options)
    assert len(got) == len(expected) == 3
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one.logits, other.logits, atol=1e-4)


def test_it_is_awaited_without_a_thread_for_each(
    remote: RemoteScanner, tiny_scanner: Scanner
) -> None:
    requests = cut(tiny_scanner)
    expected = tiny_scanner.score_units_many(requests)

    async def many() -> list[list[Any]]:
        before = threading.active_count()
        tasks = [
            asyncio.ensure_future(remote.ascore_units_many(requests)) for _ in range(20)
        ]
        await asyncio.sleep(0)
        started = threading.active_count() - before
        answers = await asyncio.gather(*tasks)
        assert started <= 1
        return answers

    for answer in asyncio.run(many()):
        for one, other in zip(answer, expected, strict=True):
            np.testing.assert_allclose(one.logits, other.logits, atol=1e-4)


def test_a_pickle_has_no_token(
    remote: RemoteScanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = pickle.dumps(remote)
    assert TOKEN.encode() not in stored
    assert TOKEN not in repr(remote)
    with pytest.raises(RemoteError, match="401"):
        pickle.loads(stored).uses_collection  # noqa: B018
    monkeypatch.setenv("SPSCANNER_TOKEN", TOKEN)
    assert pickle.loads(stored).uses_collection is True


def counted(times: list[float], *answers: Written) -> Written:
    """Gives answers one after the other, the last one repeatedly.

    Notes the times of requests.
    """

    def written(write: Callable[[bytes], object]) -> object:
        times.append(time.monotonic())
        return answers[min(len(times), len(answers)) - 1](write)

    return written


MODEL = reply(b'{"data": [{"segmenter": "sentence", "uses_collection": false}]}')


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_is_asked_again_and_given_up_after_all_retries(
    status: int,
) -> None:
    busy, times, others = (
        reply(b"no JSON", f"{status} Busy"),
        list[float](),
        list[float](),
    )
    with answering(counted(times, busy, busy, MODEL)) as url:
        assert RemoteScanner(url).uses_collection is False
    assert len(times) == 3
    assert times[1] - times[0] >= 0.2
    assert times[2] - times[1] >= 0.4
    with (
        answering(counted(others, busy)) as url,
        pytest.raises(RemoteError, match=f"{status}: no JSON"),
    ):
        RemoteScanner(url, retries=1).uses_collection  # noqa: B018
    assert len(others) == 2


@pytest.mark.parametrize("status", [400, 401, 404, 413, 422, 500, 502, 504])
def test_nothing_else_is_sent_again(status: int) -> None:
    times: list[float] = []
    with answering(
        counted(times, reply(b'{"message": "the reason"}', f"{status} No"))
    ) as url:
        with pytest.raises(
            RemoteError, match=f"/v1/models answered {status}: the reason"
        ):
            RemoteScanner(url).uses_collection  # noqa: B018
        assert len(times) == 1


def test_cancelling_ends_the_wait() -> None:
    release = threading.Event()
    with answering(lambda write: release.wait(20)) as url:
        started = time.monotonic()
        asked = iter([False, False, True])
        with pytest.raises(ScanCancelled):
            RemoteScanner(url).score_units_many(
                [("a", "b", [])], cancelled=lambda: next(asked)
            )
        assert time.monotonic() - started < 10
        release.set()


def test_no_server_is_one_clear_line() -> None:
    with pytest.raises(
        RemoteError,
        match=r"http://127.0.0.1:9/v1/models: .*is `spscanner serve` running there",
    ):
        RemoteScanner("http://127.0.0.1:9").uses_collection  # noqa: B018
