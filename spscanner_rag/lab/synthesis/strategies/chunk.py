"""The strategy "chunk": a question on consecutive sentences, with its answer and the sentences it depends on."""

import random
from collections.abc import Sequence

from spscanner_rag.lab.synthesis.conversation import Conversation, DroppedError, Values, listed
from spscanner_rag.lab.synthesis.reply_form import Field, MalformedReplyError
from spscanner_rag.lab.synthesis.settings import SynthesisSettings
from spscanner_rag.lab.synthesis.strategies.made import Made, QuestionCheck
from spscanner_rag.lab.synthesis.sub_documents import Sentence, SubDocument


class ChunkMaker:
    """Makes a question of 20 consecutive sentences at a random place."""

    name = "chunk"

    def __init__(self, settings: SynthesisSettings, check: QuestionCheck) -> None:
        self._settings, self._check = settings, check

    def make(self, sub: SubDocument, talk: Conversation) -> Made:
        """A question on consecutive sentences."""
        count = self._settings.chunk_sentences
        if len(sub.sentences) < count:
            raise DroppedError("too few sentences for a chunk")
        draw = random.Random(f"{self._settings.seed}-{sub.doc_id}-chunk")
        first = draw.randint(0, len(sub.sentences) - count)
        chunk = spans_of(sub.sentences[first : first + count])

        def check(values: Values) -> None:
            self._check.of(sub)(values)
            refuse_none(values["indices"])

        values = talk.values(
            "chunk_question",
            {"SENTENCES": listed(sub.text, chunk)},
            [Field("question", "text"), Field("answer", "text"), Field("indices", "indices", count)],
            check,
        )
        details = {
            "strategy": "chunk",
            "units": len(sub.sentences),
            "chunk": [first, first + count],
            "contexts": [[chunk[0][0], chunk[-1][1]]],
            "labels": [[len(values["indices"]), count]],
        }
        evidence = tuple(chunk[index] for index in values["indices"])
        return Made(values["question"], evidence, values["answer"], details)


def spans_of(sentences: Sequence[Sentence]) -> list[tuple[int, int]]:
    """The character spans of sentences."""
    return [(sentence.start, sentence.end) for sentence in sentences]


def refuse_none(indices: Sequence[int]) -> None:
    """Raise `MalformedReplyError` where an answer depends on no sentence."""
    if not indices:
        raise MalformedReplyError("the answer depends on no sentence")
