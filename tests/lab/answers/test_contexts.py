"""The texts that answers are given from: the best units, and windows."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from spscanner_lab.answers.contexts import (
    WINDOW_TOKENS,
    document_windows,
    retriever_contexts,
)
from spscanner_lab.answers.scoring import Answerer
from spscanner_lab.evidence.questions import Document, Question
from spscanner_lab.llm.asking import Asker
from spscanner_lab.llm.language_models import language_model_of
from spscanner_rag.baselines import BM25, Propositions
from spscanner_rag.baselines.propositions import Proposition
from spscanner_rag.baselines.settings import Setting
from spscanner_rag.scanner import Scanner
from spscanner_rag.scorers import Scorer
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.units import Segmenter, Unit
from tests.fakes import words


def test_a_document_without_units_gives_no_context() -> None:
    blank = Document("d", "walks", "", " \n ", ())
    assert retriever_contexts(Setting("bm25"), BM25(), {})(
        blank, Question("q", "Which?", ())
    ) == ("",)


TEXT = "The otter swims.  A heron flies. Rain fell all day.\nOtters and herons rest."


def numbered(sentences: int) -> str:
    """Sentences of four words each, all different."""
    return " ".join(f"Sentence number {number} stands." for number in range(sentences))


def test_default_is_the_papers() -> None:
    assert WINDOW_TOKENS == 120_000

    def starts(sentences: int) -> list[int]:
        """The first sentence of each window; each sentence has 1,000 tokens."""
        windows = document_windows(numbered(sentences), count_tokens=lambda text: 1000)
        return [int(re.findall(r"\d+", window)[0]) for window in windows]

    assert starts(120) == [0]
    assert starts(160) == [0, 40]  # the last one begins earlier, so that it is full
    assert starts(300) == [0, 59, 118, 177, 180]


def test_a_document_that_fits_is_itself() -> None:
    for text in (TEXT, "", " \n", "  one  ", "\ud800"):
        assert document_windows(text, 20, words) == (text,)


@given(
    sentences=st.lists(
        st.sampled_from(["One.", "Two words.", "Here are three.", "A B C D E F G."]),
        max_size=30,
    ),
    window=st.integers(1, 40),
)
def test_every_sentence_is_in_a_window(sentences: list[str], window: int) -> None:
    text = "\n\n".join(
        f"{number} {sentence}" for number, sentence in enumerate(sentences)
    )
    windows = document_windows(text, window, words)
    spans, position = [], 0
    for each in windows:
        position = text.index(each, position)
        spans.append((position, position + len(each)))
        assert words(each) <= max(window + 1, 8)  # 8 words, the longest sentence
    for unit in SentenceSegmenter().segment(text):
        assert any(start <= unit.start and unit.end <= end for start, end in spans)


OTTERS = " ".join(f"Otter {number} swims." for number in range(400))


class LastFirst(Scorer):
    """Ranks the last units first, and remembers the titles of what it reads."""

    segmenter: Segmenter = SentenceSegmenter()

    def __init__(self, titles: dict[str, str]) -> None:
        self.titles, self.seen = titles, set[str]()

    def score_units(
        self, query: str, text: str, units: Sequence[Unit]
    ) -> NDArray[np.float32]:
        self.seen.add(self.titles[text])
        return np.arange(len(units), dtype=np.float32)


def document(doc_id: str, *questions: Question) -> Document:
    return Document(
        doc_id, "walks", f"title of {doc_id}", f"{doc_id}. {OTTERS}", questions
    )


def question(qid: str, *answers: str) -> Question:
    return Question(qid, f"Which otter, {qid}?", ((0, 3),), answers=answers)


FIRST = document("one", question("a", "399"), question("b", " "), question("c", "399"))


@pytest.mark.parametrize(
    ("unit", "units"), [("sentence", 50), ("chunk", 5), ("passage", 1)]
)
def test_the_best_units_are_read_in_the_order_of_the_document(
    unit: str, units: int
) -> None:
    titles: dict[str, str] = {}
    setting, scorer = Setting("last", unit), LastFirst(titles)
    (text,) = retriever_contexts(setting, scorer, titles)(FIRST, FIRST.questions[0])
    assert scorer.seen == {"title of one"}
    otters = [int(number) for number in re.findall(r"Otter (\d+) ", text)]
    assert otters == sorted(otters)
    assert otters[-1] == 399
    words = {"sentence": 150, "chunk": 1201, "passage": 1201}[unit]
    assert len(text.split()) == words


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"words": 4}, "Otter 399 swims. Otter"),
        ({"words": 3}, "Otter 399 swims."),
        ({"best": 2}, "Otter 398 swims. Otter 399 swims."),
        ({"words": 10**6}, None),
    ],
)
def test_so_many_units_or_words_are_read(
    options: dict[str, int], text: str | None
) -> None:
    titles: dict[str, str] = {}
    contexts = retriever_contexts(Setting("last"), LastFirst(titles), titles, **options)
    (read,) = contexts(FIRST, FIRST.questions[0])
    assert read == text or len(read.split()) == len(FIRST.text.split())


STATEMENTS = ["Otters swim far.", "Otters eat fish daily.", "Rain falls."]


class Stated(Propositions):
    """Ranks three statements, the best of which answers in its third word."""

    def __init__(self) -> None:
        """Load nothing."""

    def best_propositions(self, query: str, text: str) -> list[Proposition]:
        return [Proposition(statement, 0, 5) for statement in STATEMENTS]


@pytest.mark.parametrize(
    ("words", "read", "match"),
    [
        (5, "Otters swim far. Otters eat", 0.0),
        (6, "Otters swim far. Otters eat fish", 1.0),
        (100, "Otters swim far. Otters eat fish daily. Rain falls.", 1.0),
    ],
)
def test_exact_match_at_so_many_words_of_propositions(
    words: int, read: str, match: float
) -> None:
    """EM@l by hand: the reader finds "fish" if it is among the first l words."""
    contexts = retriever_contexts(Setting("stated"), Stated(), {}, words=words)
    question = Question("q", "What do otters eat?", (), answers=("fish",))
    (text,) = contexts(FIRST, question)
    assert text == read
    reader = language_model_of(
        lambda prompt: f"ANSWER: {'fish' if 'fish' in prompt else 'nothing'}",
        name="reader",
    )
    score = Answerer(Asker(), reader).score(question, [text], "phrase")
    assert score.exact_match == match


def test_a_published_scanner_answers_from_its_own_units(
    published_checkpoint: Path,
) -> None:
    scanner = Scanner.from_pretrained(
        published_checkpoint, device="cpu", dtype="float32"
    )
    contexts = retriever_contexts(Setting("scanner:published"), scanner, {})
    result = scanner.scan(question("a").text, FIRST.text)
    assert 50 < len(result.logits) < 400
    assert contexts(FIRST, question("a")) == (result.context(top_k=50),)
