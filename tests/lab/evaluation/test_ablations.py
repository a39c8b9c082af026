from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from spscanner_lab.evaluation.ablations import CONTEXTS, Chunked, ablations
from spscanner_rag import Scanner
from spscanner_rag.baselines.settings import Setting, settings_of
from spscanner_rag.scorers import Request, UnitScores
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.units import Unit
from tests.fakes import words


def test_labels_and_keys() -> None:
    units = ["sentence", "chunk:150"]
    settings = [
        *settings_of(["scanner:x", "bm25"], units),
        Setting("bm25", "chunk", ("one", "two")),
    ]
    labels = [
        "scanner:x",
        "bm25",
        "bm25, chunks of 150 words",
        "bm25, one, two, chunks",
    ]
    assert [setting.label for setting in settings] == labels
    assert settings[-1].key == ("bm25, one, two", "chunk")
    assert settings[-1] != Setting(
        "bm25, one, two", "chunk"
    )  # this is another retriever


def test_which_settings_have_an_index() -> None:
    indexed = ["bm25", "dense", "dense:x", "hybrid:bm25+dense:x"]
    others = ["scanner", "crossencoder:bm25", "hybrid:bm25+scanner", "mamba:dense"]
    assert [Setting(name).has_index for name in [*indexed, *others]] == [True] * 4 + [
        False
    ] * 4


TEXT = "The otter swims. A heron flies. Rain fell all day. Otters and herons rest."


def test_a_sentence_alone_is_a_text_of_its_own(tiny_scanner: Scanner) -> None:
    alone = Chunked(tiny_scanner, 1)
    units = tiny_scanner.units_of(TEXT)
    got = alone.score_units("Which otter?", TEXT, units)
    expected = [
        tiny_scanner.scan("Which otter?", TEXT[unit.start : unit.end]).logits[0]
        for unit in units
    ]
    np.testing.assert_allclose(got, expected, atol=1e-4)
    whole = tiny_scanner.scan("Which otter?", TEXT).logits
    assert (
        np.abs(got[1:] - whole[1:]).max() > 1e-3
    )  # the text before a sentence affects its logit
    assert alone.score_units("Which otter?", " ", []).shape == (0,)


@pytest.mark.parametrize(
    ("most", "chunks"), [(1, [1, 1, 1, 1]), (7, [2, 1, 1]), (10, [3, 1]), (14, [4])]
)
def test_chunks_are_as_long_as_they_may_be(most: int, chunks: list[int]) -> None:
    read: list[tuple[str, int]] = []

    class Reads:
        count_tokens = staticmethod(words)

        def score_units_many(
            self, requests: Sequence[Request], cancelled: object
        ) -> list[UnitScores]:
            read.extend((text, len(units)) for _, text, units in requests)
            empty = [np.zeros(len(units), np.float32) for _, _, units in requests]
            return [UnitScores(logits) for logits in empty]

    units = SentenceSegmenter().segment(TEXT)
    Chunked(Reads(), most).score_units("Which otter?", TEXT, units)  # type: ignore[arg-type]
    assert [number for _, number in read] == chunks
    assert " ".join(text for text, _ in read) == TEXT


def test_names_that_files_of_runs_have() -> None:
    asked = [
        Setting("bm25"),
        Setting("scanner:a"),
        Setting("scanner:b"),
        Setting("scanner:a", "chunk"),
    ]
    short = ["sentence alone", "chunk of 1,024 tokens alone"]
    assert [setting.name for setting in ablations(asked[:1])] == [
        f"scanner, {each}" for each in short
    ]
    own = [f"{name}, {each}" for name in ("scanner:a", "scanner:b") for each in short]
    assert [setting.name for setting in ablations(asked)] == own


def test_a_published_scanner_reads_its_own_units_alone(
    published_checkpoint: Path,
) -> None:
    """A unit that fills the chunk is read as the reference segmenter gives it."""
    scanner = Scanner.from_pretrained(
        published_checkpoint, device="cpu", dtype="float32"
    )
    alone, chunks = (Chunked(scanner, tokens) for tokens in CONTEXTS.values())
    text = "It rained.\n   It froze. We left.\n\n" * 30
    units = scanner.units_of(text)
    assert any(unit.model_text.strip() != text[unit.start : unit.end] for unit in units)
    got = alone.score_units("Which day?", text, units[:3])
    for unit, logit in zip(units, got, strict=False):
        read = Unit(0, unit.end - unit.start, unit.model_text.strip())
        own = scanner.score_units("Which day?", text[unit.start : unit.end], [read])
        np.testing.assert_allclose(logit, own[0], atol=1e-4)
    assert chunks.score_units("Which day?", text, units).shape == (len(units),)
