"""What is known of the texts of a corpus: made once, and persisted."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spscanner_rag import Scanner
from spscanner_rag.retrieval import Piece, join_pieces
from spscanner_rag.retrieval.corpus_folder import read_corpus, write_corpus
from spscanner_rag.retrieval.held_texts import HeldTexts
from spscanner_rag.retrieval.held_vectors import digest_of_units
from spscanner_rag.scorers import ScanCancelled, Scorer
from tests.retrieval.encoded import TEXTS, Encoded
from tests.retrieval.searching import joined


def has_vectors(corpus: HeldTexts, scorer: Scorer) -> list[bool]:
    assert scorer.meaning is not None
    return [corpus.vectors.get(key, scorer.meaning) is not None for key in corpus.keys]


def test_vectors_are_made_once_and_kept_over_changes(
    corpus: HeldTexts, encoded: Encoded
) -> None:
    corpus.prepare(encoded, range(4))
    changed = corpus.with_texts(joined([*TEXTS[:2], "A new horse."]))
    assert has_vectors(changed, encoded) == [True, True, False]
    assert has_vectors(corpus, encoded) == [True] * 4


def test_a_folder_gives_the_vectors_back(
    corpus: HeldTexts, encoded: Encoded, tmp_path: Path
) -> None:
    corpus.prepare(encoded, range(4))
    write_corpus(tmp_path, "ours", [], corpus)
    loaded = read_corpus(tmp_path, "ours")[1].with_texts(joined(TEXTS))
    fresh = Encoded()
    assert has_vectors(loaded, fresh) == [True] * 4
    assert loaded.meaning_logits("the horse", fresh, range(3)) == corpus.meaning_logits(
        "the horse", encoded, range(3)
    )
    prepared = loaded.prepared(fresh, loaded.texts[1])
    handed = fresh.meaning.cache.get(digest_of_units(prepared.units), 2)
    assert handed is not None
    assert np.array_equal(handed.rows, corpus.vectors.of_text[corpus.keys[1]].rows)


def test_vectors_of_another_encoder_are_made_again(
    corpus: HeldTexts, encoded: Encoded
) -> None:
    corpus.prepare(encoded, range(4))
    other = Encoded(lambda texts: [[1.0, 2.0] for _ in texts])
    assert has_vectors(corpus, other) == [False] * 4
    corpus.prepare(other, range(4))
    for vectors in corpus.vectors.of_text.values():
        assert vectors.rows.shape[1] in (0, 2)


def prepare_never(*arguments: Any, **options: Any) -> Any:
    raise AssertionError("it was prepared before")


def folder_of(scanner: Scanner, folder: Path, texts: list[str]) -> HeldTexts:
    """The texts as `HeldCorpus.persist` writes them, read from the folder."""
    held_texts = HeldTexts().with_texts(joined(texts)).with_prepared(scanner)
    write_corpus(folder, "ours", [], held_texts)
    return read_corpus(folder, "ours")[1].with_texts(joined(texts))


STORIES = [
    *TEXTS,
    "A man sold the leek.\n\nThe horse \u2014 it slept \ud800. 東京は雨。",
]


def test_a_folder_has_what_a_scanner_prepared(
    tiny_scanner: Scanner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = HeldTexts().with_texts(joined(STORIES))
    expected = []
    for text in fresh.texts:
        expected.append(fresh.prepared(tiny_scanner, text))
    loaded = folder_of(tiny_scanner, tmp_path, STORIES)
    again = Scanner(tiny_scanner.checkpoint)  # nothing is kept in memory for it
    monkeypatch.setattr(Scanner, "prepare", prepare_never)
    monkeypatch.setattr(Scanner, "units_of", prepare_never)
    for text, prepared in zip(loaded.texts, expected, strict=True):
        restored = loaded.prepared(again, text)
        assert list(restored.units) == list(prepared.units)
        if prepared.units:
            (scores,) = again.score_prepared("Who sold?", [restored])
            (expected_scores,) = tiny_scanner.score_prepared("Who sold?", [prepared])
            assert scores.logits.tolist() == expected_scores.logits.tolist()


def test_what_another_scanner_prepared_is_prepared_again(
    tiny_scanner: Scanner, tmp_path: Path
) -> None:
    loaded = folder_of(tiny_scanner, tmp_path, STORIES)
    other = Scanner(tiny_scanner.checkpoint, segmenter="reference")
    assert other.preparation != tiny_scanner.preparation
    (units,) = [other.units_of(STORIES[0])]
    assert loaded.prepared(other, loaded.texts[0]).units == units


def test_damaged_arrays_of_a_text_are_made_again(
    tiny_scanner: Scanner,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arrays_of = Scanner.arrays_of

    def damaged(scanner: Scanner, prepared: Any) -> dict[str, np.ndarray]:
        arrays = arrays_of(scanner, prepared)
        return arrays | {"unit_stops": arrays["unit_stops"] + np.int32(10_000)}

    monkeypatch.setattr(Scanner, "arrays_of", damaged)
    loaded = folder_of(tiny_scanner, tmp_path, STORIES)
    again = Scanner(tiny_scanner.checkpoint)
    prepared = loaded.prepared(again, loaded.texts[1])
    assert list(prepared.units) == tiny_scanner.units_of(STORIES[1])
    assert "is prepared again: the units of the prepared text do not fit" in caplog.text


def test_vectors_of_other_sentences_are_not_used(
    bundled: Scanner, tmp_path: Path
) -> None:
    """A transcript's sentences are cut at its turns, which the counts do not know."""
    scanner = Scanner(bundled.checkpoint)
    (text,) = joined(["ANNE: I sold it. Really?\nBEN: When.\nANNE: In May. It rained."])
    loaded = folder_of(scanner, tmp_path, [text.text])
    assert scanner.meaning is not None
    vectors = loaded.vectors.get(loaded.keys[0], scanner.meaning)
    assert vectors is not None
    assert len(vectors.rows) == len(scanner.units_of(text.text))


def test_a_cancelled_preparation_leaves_nothing(
    tiny_scanner: Scanner, corpus: HeldTexts
) -> None:
    scanner = Scanner(tiny_scanner.checkpoint)
    with pytest.raises(ScanCancelled):
        corpus.prepared(scanner, corpus.texts[0], lambda: True)
    assert len(corpus.vectors) == 0
    prepared = corpus.prepared(scanner, corpus.texts[0])
    assert corpus.prepared(scanner, corpus.texts[0], lambda: True) is prepared


def test_copies_of_a_text_are_prepared_once(
    tiny_scanner: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    scanner = Scanner(tiny_scanner.checkpoint)
    pieces = []
    for number in range(2):
        piece = Piece(text="It rained.", key=str(number), source=number, start=0)
        pieces.append(piece)
    corpus = HeldTexts().with_texts(join_pieces(pieces))
    prepared = corpus.prepared(scanner, corpus.texts[0])
    monkeypatch.setattr(Scanner, "prepare", prepare_never)
    assert corpus.prepared(scanner, corpus.texts[1]) is prepared
