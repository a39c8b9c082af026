"""The same question as other people would type it: as keywords, in a request, or beside words of another text."""

import random
import re
from collections.abc import Sequence
from dataclasses import replace

from spscanner_rag.text.stop_words import STOP_WORDS
from spscanner_rag.training.data.document_store import DocumentStore
from spscanner_rag.training.data.question_draw import Drawn

MOST_WORDS = 60
"""Words of another document, at most, beside a question."""

_LEAST_WORDS = 5
_LEAST_KEYWORDS = 2
_AFTER_SHARE = 0.3  # of the texts beside a question; the others stand before it

_WORD = re.compile(r"\w+(?:[-'\u2019.,]\w+)*")
_SENTENCE_START = re.compile(r"(?<=[.!?])\s+(?=\w)")

_REQUESTS = (
    "Answer the question from the document below: {}",
    "Based on the text, {}",
    "Can you tell me the following? {}",
    "Extract every sentence that is relevant to this: {}",
    "Find the evidence for this in the file. {}",
    "Find the passages that answer the question. {}",
    "Give me the exact wording that answers: {}",
    "Hello, I am reading this for work and have a question. {} Thank you!",
    "I could not find this anywhere: {} Please quote the source.",
    "I need to know this for a report that is due this week: {}",
    "List the parts of the document that deal with the following. {}",
    "My question is: {}",
    "Please answer in one sentence. {}",
    "Question: {} Answer:",
    "Quote the sentences that support your answer. {}",
    "Search the document. {} If the answer is not there, say so.",
    "Show me where the text says something about this. {}",
    "Summarize what is said here in reply to: {}",
    "Use only the context that is given, and do not make anything up. {}",
    "We would like to check a fact. {} Name the page if possible.",
    "What does it say on this? {}",
    "You are a helpful assistant. {}",
    "{} Explain step by step.",
    "{} Give details and the relevant section.",
    "{} Keep the answer short.",
    "{} Mention everything in the document that matters.",
)


class OtherPhrasings:
    """Puts drawn questions in another form; evidence and answers stay.

    A third of them become keywords, their words without stop words. A third stand in a request, such as people
    write to an assistant. A third stand beside `MOST_WORDS` or fewer words of another document.

    Parameters
    ----------
    documents : DocumentStore
        Where the words beside a question come from.
    share : float
        The share of the questions that are put in another form.
    """

    def __init__(self, documents: DocumentStore, share: float) -> None:
        self._documents, self._share = documents, share

    def drawn(self, drawn: Drawn, draw: random.Random) -> Drawn:
        """The drawn question, in ``share`` of the cases in another form."""
        if draw.random() >= self._share:
            return drawn
        question, form = drawn.question.text, draw.randrange(3)
        if form == 0:
            text = keywords(question)
        elif form == 1:
            text = request(question, draw)
        else:
            text = self._beside_other_words(question, drawn.document, draw)
        return replace(drawn, question=replace(drawn.question, text=text))

    def _beside_other_words(self, question: str, number: int, draw: random.Random) -> str:
        """The question before or after words of a document other than ``number``; as it is if that has none."""
        other = draw.randrange(len(self._documents))
        words = [] if other == number else some_words(self._documents.document(other).text, draw)
        parts = [question, " ".join(words)] if draw.random() < _AFTER_SHARE else [" ".join(words), question]
        return " ".join(filter(None, parts))


def keywords(question: str) -> str:
    """The words of a question but stop words, in their order; the question itself if fewer than two are left."""
    words = [word for word in _WORD.findall(question) if word.lower() not in STOP_WORDS]
    return " ".join(words) if len(words) >= _LEAST_KEYWORDS else question


def request(question: str, draw: random.Random) -> str:
    """The question in a request, one of a few dozen."""
    return draw.choice(_REQUESTS).format(question)


def some_words(text: str, draw: random.Random) -> Sequence[str]:
    """Between 5 and `MOST_WORDS` words of a text from the start of one of its sentences on, few more often."""
    place = draw.randrange(len(text)) if text else 0
    start = _SENTENCE_START.search(text, place)
    begin = start.end() if start else 0
    count = round(_LEAST_WORDS * (MOST_WORDS / _LEAST_WORDS) ** draw.random())
    # words have about 6 characters; a stretch without white space is no word of a question
    return text[begin : begin + 12 * count].split()[:count]
