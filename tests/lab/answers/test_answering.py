"""Answers and scores: the context, windows, means, decisions, and a second run from stored replies."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from spscanner_lab.answers.answering import (
    WHOLE_DOCUMENT,
    WINDOW_TOKENS,
    AnswerScore,
    AnswerSet,
    answer_from,
    answer_rows,
    answer_score,
    answer_tables,
    counts_of,
    document_windows,
    questions_with_answers,
    references_of,
    retriever_contexts,
)
from spscanner_lab.evaluation.result import shown
from spscanner_lab.evidence.questions import Document, Question
from spscanner_lab.llm.asking import Asked, Asker
from spscanner_lab.llm.language_models import LanguageModel, Usage, language_model_of
from spscanner_rag.baselines import BM25
from spscanner_rag.baselines.settings import Setting
from spscanner_rag.scanner import Scanner
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.units import Unit
from tests.fakes import words
from tests.lab.answers.test_prompts import sections_of

CHOICES = ("a cat", "a dog")


Task = tuple[Question, Sequence[str]]


def task_of(
    question: str,
    contexts: Sequence[str],
    answers: Sequence[str],
    choices: Sequence[str] = (),
) -> Task:
    return (
        Question("q", question, (), answers=tuple(answers), choices=tuple(choices)),
        contexts,
    )


TASKS = (
    task_of("Who signed?", ["SAY: the keeper"], ["keeper", "The Keeper"]),
    task_of("Who signed?", ["SAY: the keeper Smith"], ["keeper"]),
    task_of("Who signed?", ["SAY: the cook"], ["keeper"]),
    task_of("Who signed?", ["FAIL"], ["keeper"]),
    task_of("Who signed?", ["SAY: mumble"], ["keeper"]),
    task_of("Who signed?", ["SAY: trouble"], ["keeper"]),  # the judge fails
    task_of("Which one?", ["SAY: B. a dog"], ["a dog"], CHOICES),
    task_of("Which one?", ["SAY: A. a cat"], ["a dog"], CHOICES),
    task_of("Who signed?", ["SAY: nobody", "SAY: the keeper"], ["keeper"]),
    task_of("Who signed?", ["SAY: one", "FAIL"], ["keeper"]),
)


def generator(prompt: str) -> str:
    """A model that replies as the last line of the material says."""
    if "FAIL" in prompt:
        raise TimeoutError("too slow")
    return f"REASON: told.\nANSWER: {re.findall(r'(?:SAY|ANSWER): (.+)', prompt)[-1]}"


def judge(prompt: str) -> str:
    candidate = prompt.rpartition("[BEGIN CANDIDATE ANSWER")[2].splitlines()[1]
    if candidate == "mumble":
        return "I cannot tell."
    if candidate == "trouble":
        raise ConnectionError("gone")
    reference = prompt.rpartition("[BEGIN REFERENCE ANSWER")[2].splitlines()[1]
    return f"DECISION: {'YES' if reference.lower() in candidate.lower() else 'NO'}"


GENERATOR, JUDGE = (language_model_of(one) for one in (generator, judge))


def scores(
    *tasks: Task, judge: LanguageModel | None = None, model: LanguageModel = GENERATOR
) -> list[AnswerScore]:
    asker = Asker(pause=0, retries=0)
    return [answer_score(*task, "phrase", model, judge, asker) for task in tasks]


def test_scores_of_every_question() -> None:
    got = [
        (score.answer, score.token_f1, score.exact_match, score.correct)
        for score in scores(*TASKS, judge=JUDGE)
    ]
    assert got == [
        ("the keeper", 1, 1, True),
        ("the keeper Smith", pytest.approx(2 / 3), 0, True),
        ("the cook", 0, 0, False),
        (None, None, None, None),
        ("mumble", 0, 0, None),
        ("trouble", 0, 0, None),
        ("B. a dog", None, 1, True),
        ("A. a cat", None, 0, False),
        ("the keeper", 1, 1, True),
        (None, None, None, None),
    ]


def test_failures_and_verdicts_are_told_apart() -> None:
    found = scores(*TASKS, judge=JUDGE)
    assert (found[3].error, found[3].judged) == ("TimeoutError: too slow", ())
    assert found[-1].error == "window 2 of 2: TimeoutError: too slow"
    assert [reply.error for reply in found[5].judged] == ["ConnectionError: gone"]
    alone = scores(*TASKS)
    assert [score.token_f1 for score in alone] == [score.token_f1 for score in found]
    assert {score.judged for score in alone} == {()}
    blunt = language_model_of(lambda prompt: "The keeper.", name="blunt")
    (score,) = scores(TASKS[0], model=blunt)
    assert (score.marked, score.exact_match) == (False, 1)


def test_a_document_without_units_gives_no_context() -> None:
    blank = Document("d", "walks", "", " \n ", ())
    assert retriever_contexts(Setting("bm25"), BM25(), {})(
        blank, Question("q", "Which?", ())
    ) == ("",)


# Windows

TEXT = "The otter swims.  A heron flies. Rain fell all day.\nOtters and herons rest."


def numbered(sentences: int) -> str:
    """Sentences of four words each, all different."""
    return " ".join(f"Sentence number {number} stands." for number in range(sentences))


def test_default_is_the_papers() -> None:
    assert WINDOW_TOKENS == 120_000

    def starts(sentences: int) -> list[int]:
        """The first sentence of each window, in a document whose sentences have 1,000 tokens each."""
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


# What models are asked, and verdicts


def asked_of(*tasks: Task, reply: str = "ANSWER: fine") -> list[dict[str, str]]:
    """The sections of all prompts."""
    seen = []

    def model(prompt: str) -> str:
        seen.append(sections_of(prompt))
        return reply

    scores(*tasks, model=language_model_of(model))
    return seen


def test_windows_are_answered_and_joined() -> None:
    tasks = [
        task_of("Who?", ["ONE here", "none here"], ["x"], ["x", "y"]),
        task_of("Why?", ["ALONE"], ["x"]),
    ]
    *windows, joined, alone = asked_of(
        *tasks, reply="<think>hm</think>REASON: seen.\nANSWER: ONE"
    )
    options = {"QUESTION": "Who?", "OPTIONS": "A. x\nB. y"}
    assert windows == [options | {"PART": "ONE here"}, options | {"PART": "none here"}]
    assert alone == {"QUESTION": "Why?", "TEXT": "ALONE"}
    parts = {f"PART {number} OF 2": "REASON: seen.\nANSWER: ONE" for number in (1, 2)}
    assert joined == options | parts


@pytest.mark.parametrize(
    ("replies", "correct"),
    [
        (["DECISION: NO", "DECISION: YES"], True),  # one matching reference is enough
        (["DECISION: NO", "hm"], None),
        (["DECISION: YES", "hm"], True),
        (["hm", "hm"], None),
        (["DECISION: NO", "DECISION: NO"], False),
        ([None, "hm"], None),
    ],
)
def test_verdicts(replies: list[str | None], correct: bool | None) -> None:
    by_reference = dict(zip(("one", "two"), replies, strict=True))

    def judge(prompt: str) -> str:
        if (reply := by_reference[sections_of(prompt)["REFERENCE ANSWER"]]) is None:
            raise TimeoutError("too slow")
        return reply

    task = task_of("?", ["SAY: x"], [" one", "", "two", "one "])
    (score,) = scores(task, judge=language_model_of(judge))
    assert (score.correct, [reply.text for reply in score.judged]) == (correct, replies)
    assert references_of(["b", " ", "a", "b "]) == ("b", "a")


# Where the text to answer from comes from, and what is counted

OTTERS = " ".join(f"Otter {number} swims." for number in range(400))


class LastFirst:
    """Ranks the last units first, and remembers the titles of what it reads."""

    segmenter = SentenceSegmenter()

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
SECOND = document("two", question("d", "400"))
ASKED = {
    "walks": (
        [(FIRST, q) for q in FIRST.questions[:2]]
        + [(SECOND, SECOND.questions[0]), (FIRST, FIRST.questions[2])]
    )
}


def in_windows(document: Document, question: Question) -> tuple[str, ...]:
    return document_windows(document.text, 500)


def last_otter(prompt: str) -> str:
    return (
        "ANSWER:"
        f" {re.findall(r'(?:Otter |ANSWER: )(.+?)(?: swims|$)', prompt, re.M)[-1]}"
    )


def test_questions_go_document_by_document_without_those_that_have_no_answer() -> None:
    found = [
        (document.doc_id, question.qid)
        for document, question in questions_with_answers(ASKED)
    ]
    assert found == [("one", "a"), ("one", "c"), ("two", "d")]
    with pytest.raises(ValueError, match="got questions without right answers"):
        questions_with_answers({"walks": [(FIRST, FIRST.questions[1])]})


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


def test_answers_belong_to_their_questions_and_are_counted() -> None:
    model, judge = (
        LanguageModel("m", last_otter),
        LanguageModel("j", lambda prompt: "DECISION: NO"),
    )
    asker, done = Asker(retries=0), list[int]()
    questions = questions_with_answers(ASKED)
    for judged in (judge, None):
        asked = WHOLE_DOCUMENT, in_windows, questions, model, judged
        found = answer_from(*asked, asker, "phrase", done.append)
        assert found.setting == WHOLE_DOCUMENT
        got = [
            (document.doc_id, question.qid, score.answer)
            for document, question, score in found.answers
        ]
        assert got == [("one", "a", "399"), ("one", "c", "399"), ("two", "d", "399")]
        assert found.answering.prompts > 3 * 4
        assert found.judging.prompts == (3 if judged else 0)
    assert done == [1, 2, 3] * 2


def scored(
    source: str,
    qid: str,
    f1: float | None,
    correct: bool | None,
    answer: str | None = "x",
) -> tuple[Document, Question, AnswerScore]:
    question = Question(qid, f"Is it {qid}?", (), answers=("y",))
    error = "gone" if answer is None else None
    match = None if f1 is None else float(f1 == 1)
    score = AnswerScore(answer, error, True, f1, match, correct)
    return Document(f"of {qid}", source, "", "", (question,)), question, score


OF_BM25 = AnswerSet(
    Setting("bm25"),
    (
        scored("a", "1", 1.0, True),
        scored("a", "2", 0.5, False),
        scored("b", "3", 0.25, None),
        scored("b", "4", None, None, None),
        scored("b", "5", 0.75, True),
    ),
    Asked(5, Usage(1_000, 50)),
    Asked(4, Usage(300, 20)),
)
NOTHING = AnswerSet(
    WHOLE_DOCUMENT,
    (scored("a", "1", None, None, None),),
    Asked(1, Usage(9, 0)),
    Asked(),
)


def test_rows_are_means_of_what_there_is() -> None:
    found = answer_rows([OF_BM25, NOTHING])
    values = {
        (row["source"], row["metric"]): row["value"]
        for row in found
        if row["metric"] in ("accuracy", "token_f1")
    }
    assert values == {
        ("a", "accuracy"): 0.5,
        ("a", "token_f1"): 0.75,
        ("b", "accuracy"): 1.0,
        ("b", "token_f1"): 0.5,
        ("macro", "accuracy"): 0.75,
        ("macro", "token_f1"): 0.625,
        ("micro", "accuracy"): 2 / 3,
        ("micro", "token_f1"): 0.625,
    }
    assert {row["retriever"] for row in found} == {"bm25"}, (
        "nothing was answered from whole documents"
    )
    assert counts_of(OF_BM25) == {
        "answers_from": "bm25",
        "answering": {"prompts": 5, "prompt_tokens": 1_000, "reply_tokens": 50},
        "judging": {"prompts": 4, "prompt_tokens": 300, "reply_tokens": 20},
    }


def test_the_table_counts_what_failed_and_what_was_not_decided() -> None:
    sets = [OF_BM25, NOTHING]
    table, lengths = answer_tables(sets, answer_rows(sets), judged=True)
    body = [[shown(cell) for cell in cells] for cells in table.body]
    assert [cells[0] for cells in body] == ["bm25", "whole document"]
    assert body[0][1].startswith("75.0 (")
    assert body[0][4:] == ["5", "1", "1", "5", "1,000", "50"]
    assert body[1][1:] == ["-", "-", "-", "1", "1", "0", "1", "9", "0"]
    assert len(table.head) == len(body[0])
    assert [cells[:2] for cells in lengths.body] == [["bm25", "0"]]
    unjudged, _ = answer_tables([OF_BM25], answer_rows([OF_BM25]), judged=False)
    assert unjudged.body[0][6] == "0", "nothing was to decide"
