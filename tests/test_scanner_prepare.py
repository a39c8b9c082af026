"""`Scanner.prepare`: the same results from a document that was prepared once."""

import gc
import tracemalloc
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_rag import PreparedDocument, Scanner, ScanResult
from spscanner_rag.files import read
from spscanner_rag.scan.reading import Reading
from spscanner_rag.scorers import ScanCancelled
from spscanner_rag.text.segmentation import SentenceSegmenter

HARBOUR = "Ann signed the treaty in May. Ships came every week. The bell rang at noon."
SOUP = "Leek soup is cooked slowly. Wash the leeks and cut them. Nobody signed it."
QUERIES = ["Who signed the treaty?", "When did the bell ring?", "\ud800 soup?"]
MARKDOWN = """# The harbour

It was built in 1701. It froze.

## The treaty

| year | signed by |
|---|---|
| 1811 | Ann |
| 1812 | Bo |
"""


def assert_equal(ours: Sequence[ScanResult], theirs: Sequence[ScanResult]) -> None:
    """Equal to the last bit."""
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one.logits, other.logits)
        np.testing.assert_array_equal(one.starts, other.starts)
        np.testing.assert_array_equal(one.ends, other.ends)
        assert one.answerable == other.answerable
        assert one.tokens_read == other.tokens_read
        assert (one.query, one.text) == (other.query, other.text)


@pytest.fixture
def markdown(tmp_path: Path) -> Any:
    """A document with headings and a table."""
    path = tmp_path / "harbour.md"
    path.write_text(MARKDOWN, encoding="utf-8")
    return read(path)


@pytest.fixture(params=["bundled", "tiny_scanner", "windowed"])
def scanner(request: pytest.FixtureRequest, windowed_checkpoint: Path) -> Scanner:
    """With an encoder, without one, and as a published scanner reads."""
    if request.param == "windowed":
        return Scanner.from_pretrained(
            windowed_checkpoint, device="cpu", dtype="float32", local_files_only=True
        )
    made: Scanner = request.getfixturevalue(request.param)
    return made


@pytest.mark.parametrize("text", [HARBOUR, SOUP, "", " \n", "x", "ﬁn \ud800. “Ö”."])
def test_a_prepared_text_gives_the_same(scanner: Scanner, text: str) -> None:
    prepared = scanner.prepare(text)
    plain = [scanner.scan(query, text) for query in QUERIES]
    assert_equal([scanner.scan(query, prepared) for query in QUERIES], plain)
    pairs = [(query, prepared) for query in QUERIES]
    assert_equal(
        scanner.scan_many(pairs), scanner.scan_many([(q, text) for q in QUERIES])
    )


def test_a_prepared_document_gives_the_same(scanner: Scanner, markdown: Any) -> None:
    prepared = scanner.prepare(markdown)
    assert [block.kind for block in prepared.blocks] == [
        block.kind for block in markdown.blocks
    ]
    plain = scanner.scan(QUERIES[0], markdown)
    result = scanner.scan(QUERIES[0], prepared)
    assert_equal([result], [plain])
    passage = result.select(top_k=1)[0]
    assert passage.headings == plain.select(top_k=1)[0].headings
    assert passage.cite() == plain.select(top_k=1)[0].cite()


@pytest.mark.parametrize("together", [False, True])
def test_prepared_and_other_texts_are_one_collection(
    scanner: Scanner, markdown: Any, together: bool
) -> None:
    documents = [HARBOUR, markdown, SOUP, HARBOUR]
    prepared = [scanner.prepare(HARBOUR), scanner.prepare(markdown), SOUP, HARBOUR]
    assert_equal(
        scanner.scan_many([(QUERIES[0], each) for each in prepared], together=together),
        scanner.scan_many(
            [(QUERIES[0], each) for each in documents], together=together
        ),
    )


def test_ranking_takes_documents_and_prepared_ones(
    scanner: Scanner, markdown: Any
) -> None:
    plain = scanner.rank(QUERIES[0], [SOUP, markdown, HARBOUR])
    prepared = [scanner.prepare(each) for each in (SOUP, markdown, HARBOUR)]
    ranked = scanner.rank(QUERIES[0], prepared)
    assert [one.number for one in ranked] == [one.number for one in plain]
    assert [one.logit for one in ranked] == [one.logit for one in plain]
    assert_equal([one.result for one in ranked], [one.result for one in plain])


def test_ranking_takes_what_files_read_returns(bundled: Scanner, markdown: Any) -> None:
    ranked = bundled.rank("Who signed the treaty in 1811?", [SOUP, markdown])
    assert ranked[0].text == markdown.text
    assert ranked[0].passages(1)[0].headings == ("The harbour", "The treaty")
    for single in (markdown, bundled.prepare(SOUP)):
        with pytest.raises(TypeError, match="got one document; expected several"):
            bundled.rank("Who?", single)


def test_a_later_question_cuts_tokenizes_and_encodes_nothing(
    bundled: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = bundled.prepare(HARBOUR * 3)
    expected = bundled.scan(QUERIES[0], HARBOUR * 3)

    def fails(*arguments: Any, **options: Any) -> Any:
        raise AssertionError("prepared again")

    monkeypatch.setattr(Reading, "index_text", fails)
    monkeypatch.setattr(Reading, "vectors", fails)
    monkeypatch.setattr(SentenceSegmenter, "segment_in_parts", fails)
    assert_equal([bundled.scan(QUERIES[0], prepared)], [expected])
    (ranked,) = bundled.rank(QUERIES[0], [prepared])
    assert_equal([ranked.result], [expected])


def test_units_may_be_given(tiny_scanner: Scanner) -> None:
    units = tiny_scanner.units_of(HARBOUR)[1:]
    prepared = tiny_scanner.prepare(HARBOUR, units=units)
    assert [unit[:2] for unit in prepared.units] == [unit[:2] for unit in units]
    logits = tiny_scanner.scan(QUERIES[0], prepared).logits
    expected = tiny_scanner.score_units(QUERIES[0], HARBOUR, units)
    np.testing.assert_array_equal(logits, expected)


def test_threads_share_it(bundled: Scanner) -> None:
    prepared = bundled.prepare(HARBOUR)
    expected = [bundled.scan(query, HARBOUR) for query in QUERIES] * 4
    with ThreadPoolExecutor(4) as threads:
        results = list(
            threads.map(lambda query: bundled.scan(query, prepared), QUERIES * 4)
        )
    assert_equal(results, expected)


@settings(deadline=None, max_examples=30)
@given(st.text(st.sampled_from("ab.\n |#é\ud800🦦"), max_size=60))
def test_any_text(tiny_scanner: Scanner, text: str) -> None:
    prepared = tiny_scanner.prepare(text)
    assert_equal(
        [tiny_scanner.scan("b a?", prepared)], [tiny_scanner.scan("b a?", text)]
    )


def test_it_knows_how_much_memory_it_takes(bundled: Scanner) -> None:
    text = Path("examples/data/persuasion.txt").read_text(encoding="utf-8")[:15_000]
    bundled.prepare(text[:1000])  # what is loaded on first use is not counted
    gc.collect()
    tracemalloc.start()
    prepared = bundled.prepare(text)
    gc.collect()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.6 * taken < prepared.nbytes - len(text) < 1.4 * taken
    assert f"{prepared.nbytes:,} bytes" in repr(prepared)
    assert prepared.n_tokens == bundled.scan("Who?", prepared).n_tokens


def test_another_scanner_refuses_it(
    tiny_scanner: Scanner, windowed_checkpoint: Path
) -> None:
    other = Scanner.from_pretrained(
        windowed_checkpoint, device="cpu", dtype="float32", local_files_only=True
    )
    with pytest.raises(ValueError, match="prepared by another scanner; expected"):
        other.scan("Who?", tiny_scanner.prepare(HARBOUR))


@pytest.mark.parametrize("text", [None, b"bytes", 3, ["text"]])
def test_what_is_no_text_is_refused(tiny_scanner: Scanner, text: Any) -> None:
    with pytest.raises(TypeError, match="text: got"):
        tiny_scanner.prepare(text)
    with pytest.raises(TypeError, match="text: got"):
        tiny_scanner.rank("Who?", [text])


def test_preparing_reports_and_can_be_cancelled(bundled: Scanner) -> None:
    text = f"{HARBOUR} {SOUP} A text that no other test prepares."
    steps: list[tuple[int, int]] = []
    with pytest.raises(ScanCancelled):
        bundled.prepare(text, cancelled=lambda: True)
    prepared = bundled.prepare(text, progress=lambda *step: steps.append(step))
    assert isinstance(prepared, PreparedDocument)
    assert steps
    assert steps[-1][0] == steps[-1][1] > 0


def test_what_is_restored_is_what_was_prepared(tiny_scanner: Scanner) -> None:
    arrays = tiny_scanner.arrays_of(tiny_scanner.prepare(HARBOUR))
    restored = tiny_scanner.restore(HARBOUR, arrays)
    scanned = tiny_scanner.scan(QUERIES[0], restored)
    assert_equal([scanned], [tiny_scanner.scan(QUERIES[0], HARBOUR)])


@pytest.mark.parametrize("number", [-1, 10**6])
def test_tokens_of_another_model_are_not_restored(
    tiny_scanner: Scanner, number: int
) -> None:
    arrays = tiny_scanner.arrays_of(tiny_scanner.prepare(HARBOUR))
    arrays["input_ids"] = arrays["input_ids"].copy()
    arrays["input_ids"][3] = number
    with pytest.raises(ValueError, match="tokens that the model does not"):
        tiny_scanner.restore(HARBOUR, arrays)


def test_vectors_of_other_sentences_are_not_restored(bundled: Scanner) -> None:
    prepared = bundled.prepare(HARBOUR)
    arrays = bundled.arrays_of(prepared)
    of_other = bundled.prepare("It rained.").vectors
    for vectors in (None, of_other):
        with pytest.raises(ValueError, match="other sentences than its vectors"):
            bundled.restore(HARBOUR, arrays, vectors)
    restored = bundled.restore(HARBOUR, arrays, prepared.vectors)
    scanned = bundled.scan(QUERIES[0], restored)
    assert_equal([scanned], [bundled.scan(QUERIES[0], prepared)])


def test_only_what_prepare_returned_has_arrays(tiny_scanner: Scanner) -> None:
    plain: Any = HARBOUR
    with pytest.raises(TypeError, match="is str; expected what this scanner's prepare"):
        tiny_scanner.arrays_of(plain)
