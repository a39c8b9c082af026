"""Properties of every document: spans, a logit for each, equal however computed."""

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_rag.checkpoint import load_checkpoint
from spscanner_rag.results import ScanResult
from spscanner_rag.scanner import Scanner
from tests.attack.hostile_texts import KINDS, check_result

TOLERANCE = 1e-4
"""Of float32 logits, between two ways to compute them (docs: equality)."""


def drawn(kind: str, seed: int, size: int) -> str:
    return KINDS[kind](random.Random(seed), size)


DOCUMENTS = st.lists(
    st.one_of(
        # any code points, lone surrogates among them
        st.text(st.characters(), max_size=20),
        st.sampled_from(
            [
                "The keeper signed the treaty. ",
                "Dr. Smith's report, No. 5, p. 12; see Fig. 3.\n\n",
            ]
        ),
        st.builds(
            drawn, st.sampled_from(list(KINDS)), st.integers(0, 999), st.integers(1, 60)
        ),
    ),
    max_size=10,
).map("".join)
QUERIES = st.one_of(
    st.sampled_from(["Who signed the treaty?", "東京", "x", "the who"]),
    st.text(st.characters(), min_size=1, max_size=20).filter(
        lambda query: bool(query.strip())
    ),
)


@pytest.fixture(scope="session")
def scanners(
    tiny_checkpoint: Path, windowed_checkpoint: Path
) -> dict[tuple[bool, int], Scanner]:
    """Scanners by whether they read windows, and by tokens per pass."""
    return {
        (windowed, tokens): Scanner(
            checkpoint, segment_tokens=tokens, local_files_only=True
        )
        for windowed, checkpoint in enumerate(
            map(load_checkpoint, (tiny_checkpoint, windowed_checkpoint))
        )
        for tokens in (64, 1000, 4096)
    }


def check_equal(result: ScanResult, expected: ScanResult) -> None:
    assert (result.query, result.text) == (expected.query, expected.text)
    assert result.starts.tolist() == expected.starts.tolist()
    assert result.ends.tolist() == expected.ends.tolist()
    np.testing.assert_allclose(result.logits, expected.logits, atol=TOLERANCE, rtol=0)
    ranked = np.sort(expected.logits)[::-1]
    for top_k in range(1, len(ranked)):
        if ranked[top_k - 1] - ranked[top_k] > 2 * TOLERANCE:
            kept, expected_kept = (
                [passage.start for passage in one.select(top_k=top_k)]
                for one in (result, expected)
            )
            assert kept == expected_kept


@settings(max_examples=60)
@given(QUERIES, DOCUMENTS, st.booleans(), st.sampled_from([64, 1000]))
def test_spans_and_logits(
    scanners: dict[tuple[bool, int], Scanner],
    query: str,
    text: str,
    windowed: bool,
    segment_tokens: int,
) -> None:
    scanner = scanners[windowed, 4096]
    expected = scanner.scan(query, text)
    check_result(expected, text)
    logits = scanner.score_units(query, text, scanner.units_of(text))
    np.testing.assert_array_equal(logits, expected.logits)
    check_equal(scanners[windowed, segment_tokens].scan(query, text), expected)


@settings(max_examples=40)
@given(
    st.lists(st.tuples(QUERIES, DOCUMENTS), min_size=1, max_size=5),
    st.sampled_from([64, 1000, 4096]),
    st.randoms(use_true_random=False),
)
def test_other_documents_beside_it(
    scanners: dict[tuple[bool, int], Scanner],
    pairs: list[tuple[str, str]],
    segment_tokens: int,
    order: random.Random,
) -> None:
    results = scanners[False, segment_tokens].scan_many(pairs)
    assert len(results) == len(pairs)
    for (query, text), result in zip(pairs, results, strict=True):
        check_result(result, text)
        check_equal(result, scanners[False, 4096].scan(query, text))
    shuffled = list(enumerate(pairs))
    order.shuffle(shuffled)
    again = scanners[False, segment_tokens].scan_many([pair for _, pair in shuffled])
    for (number, _), result in zip(shuffled, again, strict=True):
        check_equal(result, results[number])
