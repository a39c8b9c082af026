"""Answers stand before the questions and headings above them."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.encoder.meaning_weights import MeaningWeights
from spscanner_rag.results.coverage import Spans, relevant_units
from spscanner_rag.scan.echoes import after_echoes
from spscanner_rag.scanner import Scanner
from spscanner_rag.text.sentence_marks import MARKS, sentence_marks

DIALOGUES = Path(__file__).parents[1] / "data" / "dialogues"
WEIGHTS = MeaningWeights(asks=-2.0, heading=-1.0, handed=0.5)


def changed(logits: list[float], *sentences: str) -> list[float]:
    marks = sentence_marks(sentences)
    return after_echoes(np.float32(logits), marks, WEIGHTS).tolist()


def test_a_question_hands_its_lead_to_the_answer() -> None:
    assert changed([4, 0], "Ann: Who signs?", "Bob: Carla does.") == [2, 2]


def test_a_heading_does_so_too() -> None:
    assert changed([4, 0], "Signing papers", "Carla does that.") == [3, 2]


def test_the_last_of_several_questions_hands_over() -> None:
    sentences = ("Who signs?", "Does anybody know?", "Carla does.")
    assert changed([5, 2, 0], *sentences) == [3, 0, 1]


def test_a_better_answer_takes_nothing() -> None:
    assert changed([1, 3], "Who signs?", "Carla does.") == [-1, 3]


def test_other_sentences_and_the_end_of_a_text_stay() -> None:
    assert changed([1, -1], "It rained.", "They left.") == [1, -1]
    assert changed([1, 2], "It rained.", "Who knows?") == [1, 0]
    assert changed([3], "Who knows?") == [1]


@given(st.lists(st.floats(-20, 20, width=16), max_size=12), st.data())
def test_only_echoes_and_what_is_below_them_change(
    logits: list[float], data: st.DataObject
) -> None:
    kind = st.sampled_from(["Who signs?", "Carla does.", "Signing papers"])
    sentences = [data.draw(kind) for _ in logits]
    after = changed(logits, *sentences)
    assert len(after) == len(logits)
    for number, sentence in enumerate(sentences):
        if sentence != "Carla does.":
            assert after[number] < logits[number]
        elif number == 0 or sentences[number - 1] == "Carla does.":
            assert after[number] == logits[number]
        else:
            assert after[number] >= logits[number]


@pytest.mark.parametrize("above", ["Q: How do I reset my password?", "Password reset"])
def test_the_bundled_scanner_finds_the_answer_below(
    bundled: Scanner, above: str
) -> None:
    answer = "Open the start page, click on the key and follow the mail that you get."
    text = f"Our office is open from nine to five.\n\n{above}\n\n{answer}\n\nBye!\n"
    result = bundled.scan("How do I reset my password?", text)
    assert result.select(top_k=1)[0].text.strip() == answer


def _before_echoes(bundled: Scanner, file: Path) -> list[bool]:
    """Of each question that its text asks as well: is the answer before the echo?"""
    before = []
    for line in file.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        document = bundled.prepare(record["text"])
        spans = Spans.of(document.units)
        asks = sentence_marks(document.indexed.sentences)[:, MARKS.index("asks")] > 0
        for question in record["questions"]:
            if question["type"] != "echo":
                continue
            relevant = relevant_units(spans.starts, spans.ends, question["evidence"])
            logits = bundled.scan(question["question"], document).logits
            best_echo = logits[asks & ~relevant].max(initial=-np.inf)
            before.append(bool(logits[relevant].max() > best_echo))
    return before


@pytest.mark.slow
def test_written_dialogues_are_answered(bundled: Scanner) -> None:
    before = []
    for kind in ("faq", "chat", "meeting"):
        before += _before_echoes(bundled, DIALOGUES / f"{kind}.jsonl")
    assert len(before) == 90
    assert np.mean(before) >= 0.9
