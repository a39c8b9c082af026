"""Requests to logits: order, texts prepared once, windows, progress, cancellation."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.scan import passes
from spscanner_rag.scan.meter import Meter
from spscanner_rag.scan.pipeline import Pipeline
from spscanner_rag.scan.reading import Reading
from spscanner_rag.scan.requests import ScanRequest
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import ScanCancelled
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.units import Unit
from spscanner_rag.text.windows import window_ranges

QUERY = "Who signed the treaty?"
TEXT = (
    "The keeper wrote the date. He signed the treaty! Who signed it? Nobody"
    " answered.\n\n" * 3
)


def pipeline_of(scanner: Scanner, **changes: Any) -> Pipeline:
    fields = {
        "window_tokens": scanner.window_tokens,
        "segment_tokens": scanner.segment_tokens,
    } | changes
    return Pipeline(scanner.pipeline.token_reader, scanner.reading, **fields)


def logits_of(line: Pipeline, *requests: ScanRequest) -> list[np.ndarray]:
    return [scored.logits for scored in line.run(requests, Meter())]


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are cut into units."""
    texts: list[str] = []
    original = Reading.cut

    def counted(self: Reading, text: str, *others: Any) -> Sequence[Unit]:
        texts.append(text)
        return original(self, text, *others)

    monkeypatch.setattr(Reading, "cut", counted)
    return texts


def test_requests_together_cut_and_prepare_a_text_once(
    monkeypatch: pytest.MonkeyPatch, cut: list[str]
) -> None:
    scanner = Scanner.from_pretrained(
        device="cpu", dtype="float32", local_files_only=True
    )
    assert scanner.uses_collection
    prepared: list[str] = []
    prepare = Reading.index_text

    def counted_prepare(
        self: Reading, text: str, units: Any = None, *others: Any
    ) -> Any:
        prepared.append(text)
        return prepare(self, text, units, *others)

    monkeypatch.setattr(Reading, "index_text", counted_prepare)
    other = "The date is on the stone."
    requests = [
        ScanRequest(query, text)
        for text in (TEXT, other)
        for query in (QUERY, "the date", "stone")
    ]
    line = pipeline_of(scanner)
    together = [scored.logits for scored in line.run(requests, Meter(), together=True)]
    assert cut == prepared == [TEXT, other]
    words = CollectionIndex.of(
        [unit.model_text for unit in SentenceSegmenter().segment(t)]
        for t in (TEXT, other)
    )
    for ours, alone in zip(together, line.run(requests, Meter(), words), strict=True):
        np.testing.assert_array_equal(ours, alone.logits)


def test_cancelled_between_cutting_two_texts(cut: list[str]) -> None:
    scanner = Scanner.from_pretrained(
        device="cpu", dtype="float32", local_files_only=True
    )
    requests = [ScanRequest(QUERY, f"{number} {TEXT}") for number in range(5)]
    with pytest.raises(ScanCancelled):
        list(
            pipeline_of(scanner).run(
                requests, Meter(cancelled=lambda: len(cut) == 2), together=True
            )
        )
    assert len(cut) == 2


def test_runs_of_texts_give_the_same(
    tiny_scanner: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = [
        ScanRequest(QUERY, f"{number} {TEXT * (number % 3)}") for number in range(8)
    ]
    line = pipeline_of(tiny_scanner, segment_tokens=40)
    together = logits_of(line, *requests)
    monkeypatch.setattr(passes, "PASSES_AHEAD", 1)
    for ours, single in zip(together, logits_of(line, *requests), strict=True):
        np.testing.assert_allclose(ours, single, atol=1e-4)


@pytest.mark.parametrize("allowed", [0, 1, 2, 5, 9])
def test_cancelled_among_several_texts(
    tiny_scanner: Scanner, monkeypatch: pytest.MonkeyPatch, allowed: int
) -> None:
    monkeypatch.setattr(passes, "PASSES_AHEAD", 1)
    calls = 0

    def cancelled() -> bool:
        nonlocal calls
        calls += 1
        return calls > allowed

    requests = [ScanRequest(QUERY, f"{number} {TEXT}") for number in range(9)]
    run = pipeline_of(tiny_scanner, segment_tokens=40).run(
        requests, Meter(cancelled=cancelled)
    )
    answered: list[Any] = []
    with pytest.raises(ScanCancelled):
        answered.extend(run)
    assert len(answered) <= allowed


@pytest.mark.parametrize("window_tokens", [60, 100, 10_000, None])
def test_windows_are_averaged(
    windowed_checkpoint: Path, window_tokens: int | None
) -> None:
    scanner = Scanner.from_pretrained(
        windowed_checkpoint, device="cpu", dtype="float32", local_files_only=True
    )
    whole, short = TEXT * 3, "He signed it."
    line = pipeline_of(scanner, window_tokens=window_tokens)
    (scored,) = line.run([ScanRequest(QUERY, whole)], Meter())
    windows = window_ranges(scored.indexed.unit_ends, window_tokens or sys.maxsize)
    assert (len(windows) > 1) == (window_tokens in (60, 100))
    sums, counts = (
        np.zeros(len(scored.indexed.units)),
        np.zeros(len(scored.indexed.units)),
    )
    one_pass = pipeline_of(scanner, window_tokens=None)
    for first, last in windows:
        (part,) = logits_of(
            one_pass, ScanRequest(QUERY, whole, scored.indexed.units[first : last + 1])
        )
        sums[first : last + 1] += part
        counts[first : last + 1] += 1
    assert counts.min() >= 1
    np.testing.assert_allclose(scored.logits, sums / counts, atol=1e-3)
    both = logits_of(line, ScanRequest(QUERY, short), ScanRequest(QUERY, whole))
    np.testing.assert_allclose(both[1], scored.logits, atol=1e-4)


@pytest.mark.parametrize(
    "text", ["x" * 200_000, "“‘" * 20_000, "One sentence of many. " * 5000]
)
def test_cancelled_between_the_pieces_of_a_text(
    tiny_scanner: Scanner, text: str
) -> None:
    calls = 0

    def cancelled() -> bool:
        nonlocal calls
        calls += 1
        return calls == 4

    run = pipeline_of(tiny_scanner).run(
        [ScanRequest(QUERY, text)], Meter(cancelled=cancelled)
    )
    with pytest.raises(ScanCancelled, match="cancelled after 0 of 0 tokens"):
        next(run)


LONG_TEXT = " ".join(
    f"The {name} of house {number} counted {number + 3} boats in the harbour."
    for number in range(120)
    for name in ("keeper", "widow", "pilot")
)


def test_a_share_of_a_long_text_is_read(bundled: Scanner) -> None:
    cut = LONG_TEXT.index("The keeper of house 80")
    fact = "Ann Byrne signed the treaty at dawn."
    document = bundled.prepare(f"{LONG_TEXT[:cut]}{fact} {LONG_TEXT[cut:]}")
    question = "Who signed the treaty?"
    everything = bundled.scan(question, document, read="all")
    assert everything.tokens_read == everything.n_tokens == document.n_tokens
    for read, share in (("auto", 0.2), (0.1, 0.1), (0, 0.0)):
        result = bundled.scan(question, document, read=read)
        assert result.tokens_read is not None
        assert 0.8 * share <= result.tokens_read / document.n_tokens <= share
        assert len(result.logits) == len(everything.logits)
        assert np.isfinite(result.logits).all()
        assert result.select(top_k=1)[0].text == fact


def test_the_part_that_asks_is_read_after_a_situation(bundled: Scanner) -> None:
    situation = (
        "My mother counted boats in the harbour for the town, like the widow and the"
        " pilot next door, and was paid for it by the week until she moved away. "
    )
    asked = "Who signed the old treaty with the neighbours?"
    fact = "Ann Byrne signed the treaty at dawn."
    document = bundled.prepare(f"{fact} {LONG_TEXT}")
    reading = bundled.reading
    whole, part = reading.read_of(situation + asked), reading.read_of(asked)
    assert whole.asking_part == asked
    assert part.asking_part is None
    assert whole.asked_tokens == part.n_tokens < whole.n_tokens
    result = bundled.scan(situation + asked, document)
    assert result.query == situation + asked
    assert result.select(top_k=1)[0].text.strip() == fact
    matched = reading.pair(situation + asked, document.indexed)
    alone = reading.pair(asked, document.indexed)
    assert matched.question_ids.tolist() == alone.question_ids.tolist()
    assert matched.cosines is not None
    assert alone.cosines is not None
    assert matched.cosines.tolist() != alone.cosines.tolist()


def test_texts_of_a_collection_share_what_is_read(bundled: Scanner) -> None:
    cut = LONG_TEXT.index("The keeper of house 80")
    texts = [LONG_TEXT[:cut], LONG_TEXT[cut:]]
    question = "How many boats did the widow of house 110 count?"
    ranked = bundled.rank(question, texts)
    assert ranked[0].text == texts[1]
    n_tokens = sum(document.result.n_tokens or 0 for document in ranked)
    n_read = sum(document.result.tokens_read or 0 for document in ranked)
    assert 0.15 * n_tokens < n_read <= 0.2 * n_tokens


def test_a_short_text_is_scored_without_the_scan(bundled: Scanner) -> None:
    everything = bundled.scan(QUERY, TEXT, read="all")
    assert bundled.scan(QUERY, TEXT, read=0).logits.tolist() == (
        everything.logits.tolist()
    )


def test_a_scanner_reads_as_it_was_told(bundled: Scanner) -> None:
    document = bundled.prepare(LONG_TEXT)
    scanner = bundled.with_read(0)
    assert scanner.scan(QUERY, document).tokens_read == 0
    assert scanner.scan(QUERY, document, read="all").tokens_read == document.n_tokens
    assert bundled.scan(QUERY, document).tokens_read != 0
    (scores,) = scanner.score_prepared(QUERY, [document])
    expected = scanner.scan(QUERY, document).logits
    assert scores.logits.tolist() == expected.tolist()


@pytest.mark.parametrize("read", [-0.1, 1.5, "half", float("nan")])
def test_another_share_is_refused(bundled: Scanner, read: Any) -> None:
    with pytest.raises(ValueError, match='expected "auto", "all" or a share from 0'):
        bundled.scan(QUERY, TEXT, read=read)


def test_a_share_needs_a_sentence_scan(tiny_scanner: Scanner) -> None:
    with pytest.raises(ValueError, match="has no sentence scan to choose"):
        tiny_scanner.scan(QUERY, TEXT, read=0.5)
    with pytest.raises(ValueError, match="has no sentence scan to choose"):
        tiny_scanner.with_read(0)
    assert tiny_scanner.scan(QUERY, TEXT, read=1).n_tokens


def test_a_path_instead_of_a_text_is_said(tiny_scanner: Scanner) -> None:
    path = "reports/May.pdf"
    said = r"'reports/May.pdf' looks like a path.*spscanner_rag.files.read"
    with pytest.warns(UserWarning, match=said):
        tiny_scanner.scan("Who?", path)
    with pytest.warns(UserWarning, match=said):
        tiny_scanner.prepare(path)
    with pytest.warns(UserWarning, match=said):
        tiny_scanner.rank("Who?", [path])


def test_a_path_object_is_refused(tiny_scanner: Scanner) -> None:
    with pytest.raises(TypeError, match=r"got a path, 'a\.txt'; .* use spscanner_rag"):
        tiny_scanner.scan("Who?", Path("a.txt"))  # type: ignore[arg-type]
