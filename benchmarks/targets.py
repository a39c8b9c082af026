"""The targets for speed, and whether a run reached them. They are reported; missing one is no error."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from benchmarks.reading_kinds import OURS
from benchmarks.speed_results import SpeedResults

PAPERS_MEAN = 69_000  # tokens per document


class NoNumberError(Exception):
    """A target cannot be judged by the run; the message says why."""


class Target(NamedTuple):
    """One target; ``device`` None means any device."""

    name: str
    device: str | None
    at_least: bool
    bound: float
    got: Callable[[SpeedResults], float]


def judge(results: SpeedResults) -> dict[str, dict[str, object] | str]:
    """Each target with its result, its goal and whether it was met, or why it was not measured."""
    judged: dict[str, dict[str, object] | str] = {}
    for target in TARGETS:
        try:
            if target.device not in (None, results.device):
                raise NoNumberError(f"for the device {target.device}")
            got = target.got(results)
        except NoNumberError as error:
            judged[target.name] = f"not measured here: {error}"
            continue
        met = got >= target.bound if target.at_least else got <= target.bound
        wanted = f"{'at least' if target.at_least else 'at most'} {target.bound:g}"
        judged[target.name] = {"got": got, "wanted": wanted, "met": met}
    return judged


def _ours(results: SpeedResults, size: str, dtype: str, tokens: int, column: str) -> float:
    """A column of our fastest backend."""
    rows = [results.readings.get((size, dtype, kind, tokens)) for kind in OURS]
    measured = [row for row in rows if isinstance(row, dict) and column in row]
    if not measured:
        reason = next((row for row in rows if isinstance(row, str)), "no such row")
        raise NoNumberError(f"{size}, {dtype}, {tokens:,} tokens: {reason}")
    return max(measured, key=lambda row: row["tokens/s"])[column]


def _theirs(results: SpeedResults, size: str, dtype: str, kind: str, tokens: int) -> float:
    row = results.readings.get((size, dtype, kind, tokens), "no such row")
    if isinstance(row, str):
        raise NoNumberError(f"{kind}, {size}, {dtype}, {tokens:,} tokens: {row}")
    return row["tokens/s"]


def _longest(results: SpeedResults, size: str, dtype: str, kinds: tuple[str, ...]) -> int:
    """Tokens of the longest document that any of these programs read."""
    lengths = [
        key[3]
        for key, row in results.readings.items()
        if key[:2] == (size, dtype) and key[2] in kinds and isinstance(row, dict)
    ]
    if not lengths:
        raise NoNumberError(f"{' or '.join(kinds)}, {size}, {dtype}: no row with a number")
    return max(lengths)


def _over_transformers(dtype: str) -> Callable[[SpeedResults], float]:
    def got(results: SpeedResults) -> float:
        tokens = _longest(results, "130m", "float32", ("transformers",))
        theirs = _theirs(results, "130m", "float32", "transformers", tokens)
        return _ours(results, "130m", dtype, tokens, "tokens/s") / theirs

    return got


def _share(dtype: str) -> Callable[[SpeedResults], float]:
    def got(results: SpeedResults) -> float:
        tokens = _longest(results, "130m", dtype, OURS)
        return _ours(results, "130m", dtype, tokens, "share, projections only")

    return got


def _milliseconds(size: str) -> Callable[[SpeedResults], float]:
    return lambda results: _ours(results, size, "bfloat16", PAPERS_MEAN, "ms")


def _over_published(results: SpeedResults) -> float:
    theirs = _theirs(results, "130m", "bfloat16", "published", PAPERS_MEAN)
    return _ours(results, "130m", "bfloat16", PAPERS_MEAN, "tokens/s") / theirs


def _growth(column: str) -> Callable[[SpeedResults], float]:
    """A column at a million tokens divided by that at a hundred thousand, for the first size with both."""

    def got(results: SpeedResults) -> float:
        reason = NoNumberError("no documents of 100,000 and of 1,000,000 tokens")
        for size, dtype in dict.fromkeys(key[:2] for key in results.readings):
            try:
                long, short = (_ours(results, size, dtype, n, column) for n in (1_000_000, 100_000))
            except NoNumberError as error:
                reason = error
                continue
            return long / short
        raise reason

    return got


def _of_scanner(row: str, column: str) -> Callable[[SpeedResults], float]:
    def got(results: SpeedResults) -> float:
        found = results.scanner_rows.get(("default", row), "no such row")
        if isinstance(found, str) or column not in found:
            raise NoNumberError(f"{row}: {found if isinstance(found, str) else f'no {column}'}")
        return found[column]

    return got


TARGETS = (
    Target("130m, float32, over transformers float32", "cpu", True, 3.0, _over_transformers("float32")),
    Target(
        "130m, bfloat16 (where native), over transformers float32",
        "cpu",
        True,
        10.0,
        _over_transformers("bfloat16"),
    ),
    Target(
        "130m, float32, share of the product rate, projections only", "cpu", True, 0.75, _share("float32")
    ),
    Target(
        "130m, bfloat16 (where native), share of the product rate, projections only",
        "cpu",
        True,
        0.6,
        _share("bfloat16"),
    ),
    Target(
        "bundled scanner over all-MiniLM-L6-v2, sentences of a document of 100,000 tokens",
        "cpu",
        True,
        2.0,
        _of_scanner("100,000 tokens, all-MiniLM-L6-v2", "times the scan"),
    ),
    Target(
        "bundled scanner with its soft lexical channel, times without it, 100,000 tokens",
        None,
        False,
        1.1,
        _of_scanner("100,000 tokens, without the soft channel", "whole, times this"),
    ),
    Target(
        "16 questions on a document of 10,000 tokens, times one question",
        None,
        False,
        12.0,
        _of_scanner("16 questions on 10,000 tokens", "times one question"),
    ),
    Target("130m, bfloat16, 69,000 tokens, ms on an H200", "cuda", False, 45.0, _milliseconds("130m")),
    Target("130m, bfloat16, 69,000 tokens, over the published path", "cuda", True, 3.0, _over_published),
    Target("1.3b, bfloat16, 69,000 tokens, ms on an H200", "cuda", False, 400.0, _milliseconds("1.3b")),
    Target("1,000,000 tokens, times the time of 100,000", None, False, 10.5, _growth("ms")),
    Target("1,000,000 tokens, times the peak memory of 100,000", None, False, 1.05, _growth("peak MB")),
)
