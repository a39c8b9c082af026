"""The vectors of a corpus: made once, and persisted."""

from pathlib import Path

import numpy as np

from spscanner_rag.encoder.meaning import Meaning
from spscanner_rag.encoder.sentence_vectors import digest_of
from spscanner_rag.encoder.text_encoder import TextEncoder
from spscanner_rag.retrieval.corpus_folder import read_corpus, write_corpus
from spscanner_rag.retrieval.held_texts import HeldTexts
from tests.retrieval.encoded import TEXTS, WEIGHTS, embed
from tests.retrieval.searching import joined


def test_vectors_are_made_once_and_kept_over_changes(
    corpus: HeldTexts, meaning: Meaning
) -> None:
    corpus.encode(meaning, range(4))
    changed = corpus.with_texts(joined([*TEXTS[:2], "A new horse."]))
    assert [changed.has_vectors(number, meaning) for number in range(3)] == [
        True,
        True,
        False,
    ]
    assert len(corpus.vectors) == 4


def test_a_folder_gives_the_vectors_back(
    corpus: HeldTexts, meaning: Meaning, tmp_path: Path
) -> None:
    corpus.encode(meaning, range(4))
    write_corpus(tmp_path, "ours", [], corpus)
    loaded = read_corpus(tmp_path, "ours")[1].with_texts(joined(TEXTS))
    fresh = Meaning(TextEncoder(embed), WEIGHTS)
    assert all(loaded.has_vectors(number, fresh) for number in range(4))
    assert loaded.meaning_logits("the horse", fresh, range(3)) == corpus.meaning_logits(
        "the horse", meaning, range(3)
    )
    loaded.encode(fresh, [1])
    kept = fresh.cache.get(
        digest_of(["The stallion kicked him. ", "He was bitten in the arm."]), 2
    )
    assert kept is not None
    assert np.array_equal(kept.rows, corpus.vectors[corpus.keys[1]].rows)


def test_vectors_of_another_encoder_are_made_again(
    corpus: HeldTexts, meaning: Meaning
) -> None:
    corpus.encode(meaning, range(4))
    other = Meaning(TextEncoder(lambda texts: [[1.0, 2.0] for _ in texts]), WEIGHTS)
    assert not corpus.has_vectors(0, other)
    corpus.encode(other, range(4))
    assert all(vectors.rows.shape[1] in (0, 2) for vectors in corpus.vectors.values())
