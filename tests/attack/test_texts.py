"""Hostile texts and questions: exact spans, finite scores, harmless outputs."""

import io
import json
import random

import numpy as np
import pytest

from spscanner_rag.apps.compare import Comparison, Pick, Retrieval
from spscanner_rag.apps.compare.page import render_comparisons
from spscanner_rag.apps.compare.terminal import render_text
from spscanner_rag.apps.pages.report import render_report
from spscanner_rag.apps.pages.scanned_document import select_together
from spscanner_rag.apps.pages.terminal import render_documents
from spscanner_rag.files.documents import TextFile
from spscanner_rag.results import Selection
from spscanner_rag.scanner import Scanner
from spscanner_rag.system.strict_json import json_text
from tests.apps.pages.checked_page import INVISIBLE, check_page
from tests.attack.conftest import Attempt
from tests.attack.hostile_texts import KINDS, check_result
from tests.integrations.hosts import ALL, Doc

pytestmark = pytest.mark.timeout(120)
TRIES = pytest.mark.parametrize("tries", [1, pytest.param(15, marks=pytest.mark.slow)])
EACH_KIND = pytest.mark.parametrize("kind", KINDS)


def drawn(kind: str, seed: int, size: int) -> tuple[str, str]:
    """A question and a text; the question is either plain or hostile as well."""
    rng = random.Random(f"{kind} {seed}")
    text = KINDS[kind](rng, size)
    hostile = KINDS[kind](rng, 20)[:60]
    return (
        hostile if hostile.strip() and rng.random() < 0.5 else "Who signed the treaty?"
    ), text


@TRIES
@EACH_KIND
def test_scan(kind: str, tries: int, tiny_scanner: Scanner, attempt: Attempt) -> None:
    for seed in range(tries):
        query, text = drawn(kind, seed, 20_000 if seed == 1 else 2_000)
        with attempt(f"scan: {kind}"):
            check_result(tiny_scanner.scan(query, text), text)


@TRIES
@EACH_KIND
def test_classes_of_both_frameworks(
    kind: str, tries: int, tiny_scanner: Scanner, attempt: Attempt
) -> None:
    for seed in range(tries):
        query, text = drawn(kind, seed, 600)
        with attempt(f"frameworks: {kind}"):
            expected = {
                (s.start, s.end) for s in tiny_scanner.scan(query, text).sentences
            }
            for host in ALL:
                found = host.ask(
                    [Doc(text, "d", {"source": text[:30]})],
                    query,
                    scanner=tiny_scanner,
                    k=None,
                )
                assert {each.span for each in found} == expected
                for each in found:
                    assert text[slice(*each.span)] == each.text
                    assert np.isfinite([each.score, each.logit]).all()


@TRIES
@EACH_KIND
def test_writers(
    kind: str, tries: int, tiny_scanner: Scanner, attempt: Attempt
) -> None:
    for seed in range(tries):
        query, text = drawn(kind, seed, 600)
        result = tiny_scanner.scan(query, text)
        (scanned,) = select_together(
            [TextFile(text[:40], text)], [result], Selection(top_k=5, order="score")
        )
        picks = scanned.picks
        shown = tuple(
            Pick(p.start, p.end, p.score, n, 3, False) for n, p in enumerate(picks, 1)
        )
        both = (
            Retrieval(text[:20], 9, shown, 0.1, ()),
            Retrieval("b", 9, shown[:1], 0.1, ()),
        )
        compared = Comparison(text[:20], TextFile(query, text), both, (), (), query)
        with attempt(f"writers: {kind}"):
            assert not INVISIBLE.search(render_documents([scanned], io.StringIO()))
            assert not INVISIBLE.search(render_text([compared], io.StringIO()))
            check_page(render_report(query, text[:20], [scanned]))
            check_page(render_comparisons([compared]))
            written = json_text({"query": query, "texts": [p.text for p in picks]})
            assert written.isascii()
            assert json.loads(written)["texts"] == [p.text for p in picks]
