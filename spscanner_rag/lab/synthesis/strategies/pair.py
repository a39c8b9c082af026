"""The strategy "pair": a question on two chunks of a document that an embedding model finds similar."""

import random
import threading
from collections.abc import Sequence

import numpy as np

from spscanner_rag.baselines.embedders import Encoder, embed_checked
from spscanner_rag.lab.synthesis.conversation import Conversation, DroppedError, Values, listed
from spscanner_rag.lab.synthesis.reply_form import Field
from spscanner_rag.lab.synthesis.settings import SynthesisSettings
from spscanner_rag.lab.synthesis.strategies.chunk import refuse_none, spans_of
from spscanner_rag.lab.synthesis.strategies.made import Made, QuestionCheck
from spscanner_rag.lab.synthesis.sub_documents import SubDocument


class PairMaker:
    """Makes a question of a random chunk and the most similar other one."""

    name = "pair"

    def __init__(self, settings: SynthesisSettings, check: QuestionCheck, encoder: Encoder) -> None:
        self._settings, self._check, self._encoder = settings, check, encoder
        self._embedding = threading.Lock()  # models of sentence-transformers are not thread-safe

    def make(self, sub: SubDocument, talk: Conversation) -> Made:
        """A question that needs both chunks."""
        count = self._settings.chunk_sentences
        chunks = [
            sub.sentences[start : start + count] for start in range(0, len(sub.sentences) - count + 1, count)
        ]
        if len(chunks) < 2:
            raise DroppedError("too few sentences for two chunks")
        draw = random.Random(f"{self._settings.seed}-{sub.doc_id}-pair")
        one = draw.randrange(len(chunks))
        other, similarity = self._nearest([sub.text[chunk[0].start : chunk[-1].end] for chunk in chunks], one)
        first, second = (spans_of(chunks[number]) for number in sorted((one, other)))

        def check(values: Values) -> None:
            self._check.of(sub)(values)
            refuse_none(values["first"])
            refuse_none(values["second"])

        values = talk.values(
            "pair_question",
            {"FIRST PART": listed(sub.text, first), "SECOND PART": listed(sub.text, second)},
            [
                Field("question", "text"),
                Field("answer", "text"),
                Field("first", "indices", count),
                Field("second", "indices", count),
            ],
            check,
        )
        places = [count * number for number in sorted((one, other))]
        details = {
            "strategy": "pair",
            "units": len(sub.sentences),
            "chunk": [places[0], places[0] + count],
            "linked_unit": places[1],
            "distance": places[1] - places[0] - count + 1,
            "similarity": round(similarity, 4),
            "contexts": [[spans[0][0], spans[-1][1]] for spans in (first, second)],
            "labels": [[len(values["first"]), count], [len(values["second"]), count]],
        }
        evidence = [first[index] for index in values["first"]] + [second[index] for index in values["second"]]
        return Made(values["question"], tuple(evidence), values["answer"], details)

    def _nearest(self, texts: Sequence[str], one: int) -> tuple[int, float]:
        """The number of the text that is most similar to one, and their cosine."""
        with self._embedding:
            vectors = embed_checked(self._encoder.passages, texts)  # (texts, width)
        vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
        cosines = vectors @ vectors[one]
        cosines[one] = -np.inf
        best = int(np.argmax(cosines))
        return best, float(cosines[best])
