"""Checks of what a model replies: questions and labels that would teach nothing."""

import re

from spscanner_lab.synthesis.conversation import Values
from spscanner_lab.synthesis.language_detection import LanguageDetector
from spscanner_lab.synthesis.notices import is_about_a_notice
from spscanner_lab.synthesis.reply_form import MalformedReplyError

_LONGEST_QUESTION = 400
_MATERIAL = re.compile(
    r"\b(?:chunks?|connections?|linked units?|numbered (?:units?|sentences?))\b",
    re.IGNORECASE,
)


def check_question(
    values: Values, text: str, language: str, detector: LanguageDetector | None
) -> None:
    """Raise `MalformedReplyError` for a useless question.

    So is a question in another language than ``language``, unless ``detector`` is None,
    and one whose answer depends on no sentence of the ``text``.
    """
    question = values["question"]
    if len(question) > _LONGEST_QUESTION:
        raise MalformedReplyError("the question is too long")
    for word in _MATERIAL.findall(question):
        if word.lower() not in text.lower():
            reason = "the question speaks of chunks or connections"
            raise MalformedReplyError(reason, f"the question says {word}")
    if is_about_a_notice(question):
        raise MalformedReplyError("the question is about a licence or copyright notice")
    if detector is not None and detector.is_other(question, language):
        raise MalformedReplyError(
            "the question is in another language",
            f"expected a question in {language}",
        )
    for side in ("indices", "first", "second"):
        if not values.get(side, True):
            raise MalformedReplyError("the answer depends on no sentence")


def check_labels(labels: Values) -> None:
    """Raise `MalformedReplyError` unless YES comes with numbers, and NO with none."""
    if labels["relevant"] != bool(labels["indices"]):
        raise MalformedReplyError("yes or no and the numbers disagree")
