"""Compression: the tokens of a selection and of the document that was read for it."""

import pickle

import pytest

from spscanner_rag.results import Compression, ScanResult
from spscanner_rag.scanner import Scanner

TEXT = "One two three. Four. Five six."


def words(text: str) -> int:
    return len(text.split())


def result_of(**options: object) -> ScanResult:
    return ScanResult("?", TEXT, [0, 15, 21], [14, 20, 30], [1.0, 3.0, 2.0], **options)  # type: ignore[arg-type]


def test_the_same_counter_counts_what_is_kept_and_what_was_read() -> None:
    assert result_of(count_tokens=words).compression(top_k=2) == Compression(kept=3, read=6)
    counted = result_of(count_tokens=words, tokens_read=60)
    assert counted.compression(top_k=1) == (1, 60)
    assert counted.compression(top_k=1, count_tokens=len) == (5, 30)
    assert counted.compression(top_k=1, max_tokens=3, context=1) == (3, 60)
    assert counted.compression(top_k=1).share == pytest.approx(1 / 60)
    assert str(counted.compression(top_k=2)) == "3 of 60 tokens kept (5.0 %)"


def test_a_document_without_tokens_has_a_share_of_0() -> None:
    assert ScanResult("?", "", [], [], [], len).compression().share == 0  # type: ignore[arg-type]


def test_a_pickle_keeps_what_was_read_but_not_the_counter() -> None:
    back = pickle.loads(pickle.dumps(result_of(count_tokens=words, tokens_read=60)))
    assert back.tokens_read == 60
    with pytest.raises(ValueError, match="counts no tokens; expected count_tokens"):
        back.compression()
    assert back.compression(top_k=1, count_tokens=words) == (1, 6)


@pytest.mark.parametrize("tokens", [-1, 1.5, True])
def test_a_number_of_tokens_that_cannot_be_is_refused(tokens: object) -> None:
    with pytest.raises(ValueError, match="tokens_read: got"):
        result_of(tokens_read=tokens)


def test_a_scanner_counts_what_it_reads(tiny_scanner: Scanner) -> None:
    text = "He signed the treaty. It rained all day."
    result = tiny_scanner.scan("Who signed?", text)
    assert result.tokens_read == tiny_scanner.count_tokens(text)
    assert result.compression(top_k=1).kept == tiny_scanner.count_tokens(result.context(top_k=1))
    units = tiny_scanner.segment(text)
    again = tiny_scanner.scan_units("Who signed?", text, units)
    assert again.tokens_read == result.tokens_read
    assert again.logits.tolist() == result.logits.tolist()
