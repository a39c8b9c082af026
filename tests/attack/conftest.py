"""Counts what was tried and what held, and shows a table when the tests have ended."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from spscanner_lab.evaluation.machine import PeakMemory

MOST_MEGABYTES = 256.0
"""Memory that one attack may take beyond what the process held before."""

Attempt = Callable[[str], AbstractContextManager[None]]

_TRIED = pytest.StashKey[dict[str, list[int]]]()


@pytest.fixture
def attempt(request: pytest.FixtureRequest) -> Attempt:
    """Counts one attempt at an attack.

    The package holds if the block raises nothing and takes little memory.
    """
    tried = request.config.stash.setdefault(_TRIED, defaultdict(lambda: [0, 0]))

    @contextmanager
    def one(attack: str) -> Iterator[None]:
        counts = tried[attack]
        counts[0] += 1
        memory = PeakMemory()
        before = memory.megabytes() or 0.0
        yield
        taken = (memory.megabytes() or 0.0) - before
        assert taken < MOST_MEGABYTES, f"{attack}: {taken:.0f} MB"
        counts[1] += 1

    return one


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    tried = config.stash.get(_TRIED, {})
    if not tried:
        return
    width = max(map(len, tried))
    terminalreporter.section("attacks")
    terminalreporter.write_line(f"{'attack':<{width}}  tries   held")
    for attack, (tries, held) in sorted(tried.items()):
        terminalreporter.write_line(
            f"{attack:<{width}}  {tries:>5}  {held:>5}", red=held < tries
        )
    tries, held = (sum(counts[place] for counts in tried.values()) for place in (0, 1))
    terminalreporter.write_line(f"{'all':<{width}}  {tries:>5}  {held:>5}", bold=True)


def assert_one_line(message: str, folder: Path | None = None) -> None:
    """A message on one line that names the folder and does nothing to a terminal."""
    assert message
    assert folder is None or str(folder) in message
    assert not re.search(
        "[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", message
    )
    assert len(message) < 2500
