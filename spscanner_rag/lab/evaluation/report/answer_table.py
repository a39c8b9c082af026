"""The answers of a language model in the result of a run: a table, rows for files, and a line for each answer."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict

from spscanner_rag.lab.evaluation.answer_run import AnswerSet, ScoredAnswer
from spscanner_rag.lab.evaluation.report.tables import Share, Table
from spscanner_rag.lab.evaluation.statistics import Estimate, Sample, estimate
from spscanner_rag.lab.llm.asking import Asked

_SCORES: Mapping[str, Callable[[ScoredAnswer], float | None]] = {
    "accuracy": lambda answer: None if answer.score.correct is None else float(answer.score.correct),
    "token_f1": lambda answer: answer.score.token_f1,
    "exact_match": lambda answer: answer.score.exact_match,
}


def answer_rows(sets: Sequence[AnswerSet], seed: int = 0) -> list[dict[str, object]]:
    """A row for each set of answers and source of questions, then for "macro" and "micro", the means over sources.

    A score has its value, its interval and the number of its questions; it is None where no answer has it. The
    counts of prompts and tokens are in the row "micro" only. The bootstrap uses ``seed``.
    """
    return [row for own in sets for row in _rows(own, seed)]


def answer_table(sets: Sequence[AnswerSet], rows: Sequence[Mapping[str, object]], judged: bool) -> Table:
    """A line for each set, with macro means, and what its answers took."""
    macro = {row["answers_from"]: row for row in rows if row["source"] == "macro"}
    body: list[list[str | Share]] = []
    for own in sets:
        scores = [_cell(macro[own.label][name]) for name in _SCORES]
        failed = sum(answer.score.answer is None for answer in own.answers)
        undecided = sum(judged and answer.score.correct is None for answer in own.answers) - judged * failed
        counts = (len(own.answers), failed, undecided, own.answering.prompts, *own.answering.usage)
        body.append([own.label, *scores, *(f"{count:,}" for count in counts)])
    about = (
        "Macro means in percent, with 95 % intervals, without the answers that failed and, for accuracy, without "
        "those that the judge did not decide. Prompts are those for answers, without the judge's; tokens of "
        "o200k_base."
    )
    head = ["answers from", "accuracy", "token F1", "exact match", "questions", "failed", "undecided", "prompts",
            "prompt tokens", "reply tokens"]  # fmt: skip
    return Table("Answers", about, head, body)


def answer_lines(sets: Iterable[AnswerSet]) -> list[dict[str, object]]:
    """A JSON object for each answer, with its scores and the judge's replies."""
    return [
        {
            "answers_from": own.label,
            "source": answer.document.source,
            "doc_id": answer.document.doc_id,
            "qid": answer.question.qid,
            "question": answer.question.text,
            "references": list(answer.question.answers),
            **{name: value for name, value in asdict(answer.score).items() if name != "qid"},
        }
        for own in sets
        for answer in own.answers
    ]


def _rows(own: AnswerSet, seed: int) -> list[dict[str, object]]:
    samples = {name: _samples(own.answers, score) for name, score in _SCORES.items()}
    sources = sorted({answer.document.source for answer in own.answers})
    rows: list[dict[str, object]] = []
    for source in (*sources, "macro", "micro"):
        row: dict[str, object] = {"answers_from": own.label, "source": source}
        for name, by_source in samples.items():
            if source in ("macro", "micro"):
                found = (
                    estimate(by_source, "macro" if source == "macro" else "micro", seed=seed)
                    if by_source
                    else None
                )
            else:
                found = estimate({"": by_source[source]}, seed=seed) if source in by_source else None
            row[name] = _score(found)
        rows.append(row)
    rows[-1] |= {"answering": _counts(own.answering), "judging": _counts(own.judging)}
    return rows


def _samples(
    answers: Iterable[ScoredAnswer], score: Callable[[ScoredAnswer], float | None]
) -> dict[str, Sample]:
    found: dict[str, list[tuple[float, str]]] = {}
    for answer in answers:
        if (value := score(answer)) is not None:
            found.setdefault(answer.document.source, []).append((value, answer.document.doc_id))
    return {
        source: Sample([value for value, _ in own], [doc_id for _, doc_id in own])
        for source, own in sorted(found.items())
    }


def _score(found: Estimate | None) -> dict[str, object] | None:
    if found is None:
        return None
    return {"value": found.value, "ci_low": found.low, "ci_high": found.high, "questions": found.questions}


def _counts(asked: Asked) -> dict[str, int]:
    prompt_tokens, reply_tokens = asked.usage
    return {"prompts": asked.prompts, "prompt_tokens": prompt_tokens, "reply_tokens": reply_tokens}


def _cell(score: object) -> str | Share:
    if not isinstance(score, dict):
        return "-"
    return Share(value=score["value"], ci_low=score["ci_low"], ci_high=score["ci_high"])
