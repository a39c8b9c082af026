"""A language model's answers to questions on documents: prompts, replies, and scores by words and by a judge."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from itertools import islice
from string import ascii_uppercase
from threading import Event
from typing import Literal, NamedTuple

import numpy as np

from spscanner_lab.evaluation.corpora import segmenter_for
from spscanner_lab.evaluation.records import Record
from spscanner_lab.evaluation.result import Result, Table
from spscanner_lab.evaluation.statistics import LENGTH_EDGES, Row, length_bin, rows_of
from spscanner_lab.evidence.metrics import normalized, words_of
from spscanner_lab.evidence.questions import Asked as AskedQuestion
from spscanner_lab.evidence.questions import Document, Question, by_document
from spscanner_lab.llm.asking import Asked, Asker, Reply
from spscanner_lab.llm.language_models import (
    LanguageModel,
    fenced_prompt,
    without_thoughts,
)
from spscanner_rag.baselines.settings import Setting
from spscanner_rag.results import ScanResult
from spscanner_rag.results.coverage import Spans
from spscanner_rag.results.selection import rank
from spscanner_rag.scorers import Scorer, score_batch
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.token_counts import CountTokens, resolve_counter
from spscanner_rag.text.tokenization import window_ranges

WINDOW_TOKENS = 120_000
"""The paper's windows over a whole document; each begins half a window, 60,000
tokens, after the previous one."""

WHOLE_DOCUMENT = Setting("whole document", "")
"""Answers from the full context: the direct-answer baseline of the paper's appendix
E.3."""

SCORES = ("accuracy", "token_f1", "exact_match")

PAPER_UNITS = {"sentence": 50, "chunk": 5}
"""How many of the best units the model reads; of other kinds of units, it reads ten."""

Contexts = Callable[[Document, Question], Sequence[str]]
"""Returns the text that a question is answered from, or the windows of a long one."""

AnswerLength = Literal["phrase", "sentence", "paragraph"]

_ANSWER = re.compile(r"\bANSWER\b[*_`\"']*\s*[:：][*_`\"']*")  # noqa: RUF001 - the wide colon is meant
_KINDS = {
    "phrase": "the shortest phrase that answers it, not a sentence",
    "sentence": "one short sentence",
    "paragraph": "one short paragraph, without line breaks",
}

_FREEFORM_RULES = """\
Judge whether a candidate answer to a question says what the reference answer says. The rules:
1. Most of what the candidate says is also in the reference. What it merely repeats from the question does not \
count against it.
2. It may say more than the reference, as long as all that the reference says is there and nothing contradicts it.
3. A number in the reference must be in the candidate too: the same once it is rounded to the precision of the \
reference. What counts is the number as written: for the reference 40, "40 thousand" agrees; for the reference \
2150, "2.15 thousand" does not."""
_CHOICE_RULES = """\
Judge whether a candidate answer to a multiple-choice question picks the option that the reference answer gives. \
The rules:
1. It must be that option, by its letter or by its words.
2. It must not pick any other option besides. Words that it repeats from the question do not matter."""
_CLOSING = """\
Compare the two answers step by step: write your reasons after the word REASON and a colon. Then write, on the \
last line, the word DECISION, a colon and one word: YES if the candidate is right by the rules, otherwise NO."""

_DECISION = re.compile(
    r"\bdecision\b[\s*_`\"']*(?::+|：|=|-+|–|is\b)[\s*_`\"'(\[]*(yes|no)\b"  # noqa: RUF001
    r"(?=[*_`\"')\]}\s]*(?:$|[.,;:!(–—-]|because\b))",  # noqa: RUF001
    re.IGNORECASE | re.MULTILINE,
)
_EITHER = re.compile(
    r"\b(yes\W+or\W+(decision\W+)?no|no\W+or\W+(decision\W+)?yes)\b", re.IGNORECASE
)
_BARE = re.compile(r"\W*(yes|no)\W*", re.IGNORECASE)
_NOTHING_MORE = re.compile(r"\W*\Z")
_PICK = re.compile(
    r"(?:^|\b(?:option|choice|answer)(?:\s+is)?\b)[\W_]*(?:option\s+)?([A-Z])(?=\W*$|[).:\]*_])",
    re.IGNORECASE,
)
_ANOTHER = re.compile(
    r"(?<!\w)([A-Z])(?=[).:\]])|(?:\b(?:and|or)\b|[,/&+])[\W_]{0,5}([A-Z])(?!\w)"
)


def answer_prompt(
    question: str,
    context: str,
    choices: Sequence[str] = (),
    length: AnswerLength = "sentence",
) -> str:
    """The prompt for an answer from the retrieved sentences, or from a whole document."""
    instructions = (
        "Answer a question from a text. The text may be a selection of sentences of a"
        " longer document: connect what belongs together."
    )
    return _prompt(
        instructions,
        question,
        choices,
        {"TEXT": context},
        _closing("the text", choices, length),
    )


def window_prompt(
    question: str,
    window: str,
    place: str,
    choices: Sequence[str] = (),
    length: AnswerLength = "sentence",
) -> str:
    """The prompt for an answer from one window, such as "2 of 3", of a document too long to read at once."""
    instructions = (
        f"Answer a question from part {place} of a long document; neighbouring parts"
        " overlap. If this part does not hold the answer, say so, and say what in it"
        " bears on the question."
    )
    closing = _closing("this part", choices, length, ', or "not in this part"')
    return _prompt(instructions, question, choices, {"PART": window}, closing)


def aggregation_prompt(
    question: str,
    replies: Sequence[str],
    choices: Sequence[str] = (),
    length: AnswerLength = "sentence",
) -> str:
    """The prompt that combines the replies to the windows of a document into one answer."""
    instructions = (
        "A long document was read in overlapping parts, and a question was answered"
        " from each part alone, with reasons. Weigh these answers against each other"
        " and give the answer for the whole document. A part that lacks the answer says"
        " nothing about the others."
    )
    parts = {
        f"PART {number} OF {len(replies)}": reply.strip()
        for number, reply in enumerate(replies, 1)
    }
    return _prompt(
        instructions,
        question,
        choices,
        parts,
        _closing("these answers", choices, length),
    )


def judge_prompt(
    question: str, reference: str, answer: str, choices: Sequence[str] = ()
) -> str:
    """The prompt for the judge.

    Question, options and both answers are fenced, as documents are.
    """
    answers = {"REFERENCE ANSWER": reference, "CANDIDATE ANSWER": answer}
    return _prompt(
        _CHOICE_RULES if choices else _FREEFORM_RULES,
        question,
        choices,
        answers,
        _CLOSING,
    )


def answer_in(reply: str) -> tuple[str, bool]:
    """The answer in a reply, and whether it was marked: the first line after the last ``ANSWER:``, or else all."""
    reply = without_thoughts(reply)
    marks = list(_ANSWER.finditer(reply))
    if not marks:
        return reply, False
    return reply[marks[-1].end() :].strip().partition("\n")[0].strip(" \t\r*_`"), True


def decision_in(reply: str) -> bool | None:
    """The judge's decision: True for YES, False for NO, None if there is none or it is unclear.

    A decision is the word DECISION, a colon (or dash, or "is"), and YES or NO as a
    separate word. If a reply contains both, as when the judge quotes the candidate,
    only a decision that ends the reply counts. A reply of only YES or NO also counts.
    """
    reply = without_thoughts(reply)
    if bare := _BARE.fullmatch(reply):
        return bare[1].lower() == "yes"
    found = list(_DECISION.finditer(reply))
    if not found:
        return None
    last = found[-1]
    if _EITHER.search(reply, reply.rfind("\n", 0, last.start()) + 1):
        return None
    if len({match[1].lower() for match in found}) > 1 and not _NOTHING_MORE.match(
        reply, last.end()
    ):
        return None
    return last[1].lower() == "yes"


def _prompt(
    instructions: str,
    question: str,
    choices: Sequence[str],
    material: Mapping[str, str],
    closing: str,
) -> str:
    letters = zip(ascii_uppercase, choices, strict=False)
    options = (
        {"OPTIONS": "\n".join(f"{letter}. {choice}" for letter, choice in letters)}
        if choices
        else {}
    )
    return fenced_prompt(
        instructions, {"QUESTION": question, **options, **material}, closing
    )


def _closing(
    source: str, choices: Sequence[str], length: AnswerLength, or_none: str = ""
) -> str:
    form = (
        "the letter of exactly one option, a full stop and the option's words"
        if choices
        else _KINDS[length]
    )
    return (
        f"Reason step by step from {source}: write your reasons after the word REASON"
        " and a colon. Then write, on the last line, the word ANSWER, a colon and your"
        f" answer: {form}{or_none}."
    )


def exact_match(answer: str, references: Iterable[str]) -> float:
    """1.0 if the answer equals one of the references when both are `normalized`, else 0.0."""
    return float(normalized(answer) in map(normalized, references))


def token_f1(answer: str, references: Iterable[str]) -> float:
    """F1 of the `normalized` words of an answer and its nearest reference, counting repetitions: 0 to 1."""
    return max(
        _f1(normalized(answer).split(), normalized(each).split()) for each in references
    )


def choice_in(answer: str, choices: Sequence[str]) -> int | None:
    """The option, from 0, whose letter or words an answer gives.

    None if it gives none or several.
    """
    words = [words_of(choice) for choice in choices]
    by_words = {i for i, own in enumerate(words) if own and own == words_of(answer)}
    picks = by_words | _by_letter(answer, words)
    return picks.pop() if len(picks) == 1 else None


def _by_letter(answer: str, words: Sequence[str]) -> set[int]:
    """The option whose letter an answer gives, and any other option whose words or letter come after it."""
    letters = ascii_uppercase[: len(words)]
    pick = _PICK.search(answer)
    if pick is None or pick[1].upper() not in letters:
        return set()
    picked = letters.index(pick[1].upper())
    rest = answer[pick.end() :]
    if words_of(rest) == words[picked]:
        return {picked}
    others = {i for i, own in enumerate(words) if own and own == words_of(rest)}
    named = {match[1] or match[2] for match in _ANOTHER.finditer(rest)}
    return (
        {picked}
        | others
        | {letters.index(letter) for letter in named if letter in letters}
    )


def _f1(answer: list[str], reference: list[str]) -> float:
    if not answer or not reference:
        return float(answer == reference)
    common = (Counter(answer) & Counter(reference)).total()
    return 2 * common / (len(answer) + len(reference))


@dataclass(frozen=True, slots=True)
class AnswerScore:
    """The scores of one question.

    All are None if the model failed, even if on only one of several windows.
    """

    answer: str | None  # None if the model failed
    error: str | None  # why it failed
    # False if the reply did not mark its answer as asked; then all of the reply is the
    # answer
    marked: bool
    token_f1: float | None  # 0 to 1; None for a multiple-choice question
    exact_match: (
        float | None
    )  # 0 or 1; for a multiple-choice question, 1 if the right option was picked
    correct: (
        bool | None
    )  # True if the judge says YES for any reference, False if NO for all, else None
    judged: tuple[Reply, ...] = ()  # the judge's replies, one for each reference


def answer_score(
    question: Question,
    contexts: Sequence[str],
    length: AnswerLength,
    model: LanguageModel,
    judge: LanguageModel | None,
    asker: Asker,
) -> AnswerScore:
    """Let a language model answer a question, and score the answer.

    Without a judge, by its words alone.

    ``contexts`` has the text to answer from, or windows whose answers are combined. One
    match with a right answer is enough. The paper's script sets the judge's temperature
    to 0 and asks for a sentence or a paragraph, depending on the benchmark; "phrase"
    suits token F1 and exact match against short answers.
    """
    reply = _reply(question, contexts, length, model, asker)
    if reply.text is None:
        return AnswerScore(None, reply.error, True, None, None, None)
    text, marked = answer_in(reply.text)
    references, choices = references_of(question.answers), question.choices
    if choices:
        picked, f1 = choice_in(text, choices), None
        match = float(picked is not None and choices[picked].strip() in references)
    else:
        f1, match = token_f1(text, references), exact_match(text, references)
    if judge is None:
        return AnswerScore(text, None, marked, f1, match, None)
    prompts = (
        judge_prompt(question.text, reference, text, choices)
        for reference in references
    )
    judged = tuple(
        asker.reply(judge, prompt) for prompt in prompts
    )  # one per reference, as in the paper
    decisions = [
        None if each.text is None else decision_in(each.text) for each in judged
    ]
    correct = True if True in decisions else None if None in decisions else False
    return AnswerScore(text, None, marked, f1, match, correct, judged)


def _reply(
    question: Question,
    contexts: Sequence[str],
    length: AnswerLength,
    model: LanguageModel,
    asker: Asker,
) -> Reply:
    """The reply to a question.

    Another prompt combines the replies to several windows, if none failed.
    """
    count, asked = len(contexts), (question.choices, length)
    if count == 1:
        return asker.reply(model, answer_prompt(question.text, contexts[0], *asked))
    parts = []
    for number, window in enumerate(contexts, 1):
        reply = asker.reply(
            model, window_prompt(question.text, window, f"{number} of {count}", *asked)
        )
        if reply.text is None:
            return Reply(None, f"window {number} of {count}: {reply.error}")
        parts.append(without_thoughts(reply.text))
    return asker.reply(model, aggregation_prompt(question.text, parts, *asked))


def references_of(answers: Iterable[str]) -> tuple[str, ...]:
    """The distinct answers among these, in order, without blank ones."""
    return tuple(dict.fromkeys(answer.strip() for answer in answers if answer.strip()))


def document_windows(
    text: str,
    window_tokens: int = WINDOW_TOKENS,
    count_tokens: CountTokens | str = "o200k_base",
) -> tuple[str, ...]:
    """A document as half-overlapping windows of whole sentences.

    A document that fits is one window.

    The last window may have one token more than ``window_tokens``, and a longer
    sentence is a window by itself. Leave room in the model's context for the question
    and the reply.
    """
    count = resolve_counter(count_tokens)
    units = SentenceSegmenter().segment(text)
    # A sentence includes the white space after it, so that the windows cover the whole
    # document.
    starts = [0, *(unit.start for unit in units[1:])]
    ends = [*starts[1:], len(text)]
    lengths = [
        max(1, count(text[start:end])) for start, end in zip(starts, ends, strict=True)
    ]
    if sum(lengths) <= window_tokens:
        return (text,)
    ranges = window_ranges(np.cumsum(lengths, dtype=np.int64) - 1, window_tokens)
    return tuple(text[starts[first] : ends[last]] for first, last in ranges)


class AnswerSet(NamedTuple):
    """The answers from the text that a setting finds, and the prompts and tokens of the model and of the judge."""

    setting: Setting
    answers: tuple[
        tuple[Document, Question, AnswerScore], ...
    ]  # in the order of the questions
    answering: Asked
    judging: Asked


def retriever_contexts(
    setting: Setting,
    scorer: Scorer,
    titles: dict[str, str],
    best: int | None = None,
    words: int | None = None,
) -> Contexts:
    """Give the ``best`` units, by default the paper's 50 sentences or 5 chunks, in text order; fill ``titles``.

    With ``words``, give that many words of the best units, best first, as in EM@l of
    Dense X Retrieval (Chen et al., 2024).
    """
    segmenter = segmenter_for(setting.unit, scorer)
    top_k = PAPER_UNITS.get(setting.unit, 10) if best is None else best

    def contexts(document: Document, question: Question) -> tuple[str]:
        titles.clear()
        titles[document.text] = document.title
        units, text = segmenter.segment(document.text), document.text
        (logits,) = score_batch(scorer, [(question.text, text, units)])
        if words is None:
            return (
                ScanResult(question.text, text, *Spans.of(units), logits).context(
                    top_k=top_k
                ),
            )
        ranked = (units[number] for number in rank(logits))
        read = (word for unit in ranked for word in text[unit.start : unit.end].split())
        return (" ".join(islice(read, words)),)

    return contexts


def questions_with_answers(
    questions: Mapping[str, Sequence[AskedQuestion]],
) -> list[AskedQuestion]:
    """The questions that have a reference answer, document by document.

    ``ValueError`` if there is none.
    """
    found = [
        (document, question)
        for asked in questions.values()
        for document, own in by_document(asked)
        for question in own
        if references_of(question.answers)
    ]
    if not found:
        raise ValueError(
            "--answers: got questions without right answers to compare with; expected a"
            " list of right answers under 'answers' of at least one question"
        )
    return found


def answer_from(
    setting: Setting,
    contexts: Contexts,
    questions: Sequence[AskedQuestion],
    model: LanguageModel,
    judge: LanguageModel | None,
    asker: Asker,
    length: AnswerLength | None = None,
    progress: Callable[[int], object] = lambda done: None,
) -> AnswerSet:
    """Score a model's answers to `questions_with_answers` from ``contexts``.

    ``progress`` gets the questions done.

    Without ``length``, each answer is requested in its question's ``answer_form``, or
    else in a sentence.
    """
    asker = replace(asker, stop=Event())  # a copy, which counts from zero

    def scored(task: tuple[Question, Sequence[str]]) -> AnswerScore:
        form: AnswerLength = length or task[0].answer_form or "sentence"  # type: ignore[assignment]
        return answer_score(*task, form, model, judge, asker)

    tasks = (
        (question, contexts(document, question)) for document, question in questions
    )
    answers: list[tuple[Document, Question, AnswerScore]] = []
    with closing(asker.in_order(tasks, scored)) as scores:
        for asked, score in zip(questions, scores, strict=True):
            answers.append((*asked, score))
            progress(len(answers))
    judging = Asked() if judge is None else asker.asked(judge)
    return AnswerSet(setting, tuple(answers), asker.asked(model), judging)


def answer_rows(sets: Sequence[AnswerSet], seed: int = 0) -> list[Row]:
    """Rows as in ``results.json`` of "accuracy", "token_f1" and "exact_match", over the answers that have them.

    In rows of "accuracy_by_length" and the like, ``k`` is the first length of a bin
    (the paper's Figure 3).
    """
    records = []
    for own in sets:
        for document, question, score in own.answers:
            scores = {
                "accuracy": score.correct,
                "token_f1": score.token_f1,
                "exact_match": score.exact_match,
            }
            metrics = {
                name: float(value)
                for name, value in scores.items()
                if value is not None
            }
            size = len(document.text)
            metrics |= {
                f"{name}_by_length@{length_bin(size)}": value
                for name, value in metrics.items()
            }
            names = (document.source, document.split, document.doc_id, question.qid)
            records.append(Record(*own.setting.key, *names, size, metrics))
    return rows_of(records, [own.setting for own in sets], seed)


def answer_tables(
    sets: Sequence[AnswerSet], rows: Sequence[Row], judged: bool
) -> list[Table]:
    """Tables with a line per set, its macro means and costs, and a line per set and length of documents."""
    result = Result(rows, (), [own.setting for own in sets])
    body: list[list[str | Row]] = []
    for own in sets:
        scores = [
            result.find(own.setting, name, None, "macro") or "-" for name in SCORES
        ]
        failed = sum(score.answer is None for *_, score in own.answers)
        undecided = (
            sum(judged and score.correct is None for *_, score in own.answers)
            - judged * failed
        )
        counts = (
            len(own.answers),
            failed,
            undecided,
            own.answering.prompts,
            *own.answering.usage,
        )
        body.append([own.setting.label, *scores, *(f"{count:,}" for count in counts)])
    about = (
        "Macro means in percent, with 95 % intervals, without failed answers and, for"
        " accuracy, without answers that the judge did not decide. Prompts and their"
        " tokens (o200k_base) are those for answers, without the judge's."
    )
    counted = [
        "questions",
        "failed",
        "undecided",
        "prompts",
        "prompt tokens",
        "reply tokens",
    ]
    by_length: list[list[str | Row]] = []
    for own in sets:
        for edge in LENGTH_EDGES:
            found = [
                result.find(own.setting, f"{name}_by_length", edge, "macro")
                for name in SCORES
            ]
            if any(found):
                by_length.append(
                    [own.setting.label, f"{edge:,}", *(row or "-" for row in found)]
                )
    lengths = (
        "Macro means in percent, for documents from this many characters up to the next"
        " line's."
    )
    return [
        Table("Answers", about, ["answers from", *SCORES, *counted], body),
        Table(
            "Answers by length",
            lengths,
            ["answers from", "characters", *SCORES],
            by_length,
        ),
    ]


def answer_lines(sets: Iterable[AnswerSet]) -> Iterator[dict[str, object]]:
    """A JSON object for each answer, with its scores and the judge's replies."""
    for own in sets:
        for document, question, score in own.answers:
            yield {
                "answers_from": own.setting.label,
                "source": document.source,
                "doc_id": document.doc_id,
                "qid": question.qid,
                "question": question.text,
                "references": list(question.answers),
                **asdict(score),
            }


def counts_of(own: AnswerSet) -> dict[str, object]:
    """What a set of answers took, as JSON: prompts and tokens of the model and of the judge."""
    asked = {"answering": own.answering, "judging": own.judging}
    return {"answers_from": own.setting.label} | {
        name: {"prompts": each.prompts, **each.usage._asdict()}
        for name, each in asked.items()
    }
