"""Which vectors are kept, and that threads and forks read a text once."""

import os
import threading
from typing import Any

import pytest

from spscanner_rag.encoder import vector_cache
from spscanner_rag.encoder.meaning import Meaning
from spscanner_rag.encoder.meaning_weights import MeaningWeights
from spscanner_rag.encoder.sentence_encoder import ignore
from spscanner_rag.encoder.sentence_vectors import digest_of
from spscanner_rag.encoder.token_encoder import TokenEncoder
from spscanner_rag.system.kept_values import bound_of_process

SENTENCES = ["the keeper wrote the date . ", "he signed the treaty . ", "it rained ! "]
WEIGHTS = MeaningWeights(scanner=0.5, sentence=10, near=2, wide=1, bias=-3)


class Counting:
    """An encoder that counts how often it reads."""

    def __init__(self, encoder: TokenEncoder) -> None:
        self.encoder, self.digest, self.reads = encoder, encoder.digest, 0
        self.question = encoder.question

    def vectors(self, *arguments: Any) -> Any:
        """Read, and count."""
        self.reads += 1
        return self.encoder.vectors(*arguments)


def test_a_text_is_read_once(encoder: TokenEncoder) -> None:
    counting = Counting(encoder)
    meaning = Meaning(counting, WEIGHTS)
    totals, steps = list[int](), list[int]()
    threads = [
        threading.Thread(
            target=meaning.vectors, args=(SENTENCES, totals.append, steps.append)
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counting.reads == 1
    assert sum(totals) == sum(steps) > 0
    assert meaning.has_vectors(SENTENCES)


def test_a_long_text_does_not_hold_up_a_short_one(encoder: TokenEncoder) -> None:
    meaning, begun, goes_on = (
        Meaning(encoder, WEIGHTS),
        threading.Event(),
        threading.Event(),
    )

    def wait(tokens: int) -> None:
        begun.set()
        assert goes_on.wait(30)

    long = threading.Thread(target=meaning.vectors, args=(SENTENCES * 3, wait))
    long.start()
    assert begun.wait(30)
    assert len(meaning.vectors(SENTENCES).rows) == 3
    goes_on.set()
    long.join()
    assert meaning.has_vectors(SENTENCES * 3)


def test_a_forked_child_waits_for_no_lock_of_its_parent(encoder: TokenEncoder) -> None:
    meaning = Meaning(encoder, WEIGHTS)
    with (
        vector_cache.only_reader_of(digest_of(SENTENCES), ignore),
        bound_of_process()._lock,
    ):
        child = os.fork()
        if not child:
            meaning.vectors(SENTENCES)
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def test_vectors_share_the_bound_of_all_that_the_process_keeps(
    encoder: TokenEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound = bound_of_process()
    meaning = Meaning(encoder, WEIGHTS)
    texts = [[sentence] * 3 for sentence in SENTENCES]
    size_of_one = meaning.vectors(texts[0]).nbytes
    monkeypatch.setattr(bound, "most_bytes", 2 * size_of_one - 1)
    for text in texts:
        meaning.vectors(text)
    assert [meaning.has_vectors(text) for text in texts] == [False, False, True]


def test_a_process_that_keeps_nothing_makes_vectors_again(
    encoder: TokenEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bound_of_process(), "most_bytes", 0)
    counting = Counting(encoder)
    meaning = Meaning(counting, WEIGHTS)
    first = meaning.vectors(SENTENCES)
    again = meaning.vectors(SENTENCES)
    assert counting.reads == 2
    assert (first.rows == again.rows).all()
