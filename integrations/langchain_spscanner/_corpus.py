"""The retriever's documents, joined to texts once, and which of them a first stage chose."""

from collections.abc import Sequence

from langchain_core.documents import Document

from langchain_spscanner._conversion import Text, read
from langchain_spscanner._identity import score_of
from langchain_spscanner._wholes import Wholes


class Corpus:
    """Documents ready to be scanned.

    Parameters
    ----------
    documents
        What is scanned, or expanded to.
    document_key
        As for `read`.
    """

    def __init__(self, documents: Sequence[Document], document_key: str | None) -> None:
        self.documents = documents
        self.document_key = document_key
        self._reading = read(documents, document_key)
        self._wholes = Wholes(documents, document_key)

    @property
    def texts(self) -> list[Text]:
        """All of it."""
        return [Text(joined, self._reading) for joined in self._reading.texts]

    def chosen(self, found: Sequence[Document]) -> list[Text]:
        """The texts that these chunks were cut from, best first; a chunk of none of them is one by itself."""
        best: dict[int, int] = {}  # text to the first of its chunks
        strange: list[int] = []
        for number, chunk in enumerate(found):
            texts = {self._reading.text_of[at] for at in self._wholes.holding(chunk)}
            if len(texts) == 1:
                best.setdefault(texts.pop(), number)
            else:
                strange.append(number)
        ranked = [
            (number, Text(self._reading.texts[at], self._reading, score_of(found[number])))
            for at, number in best.items()
        ]
        alone = read([found[number] for number in strange], self.document_key)
        ranked += [
            (strange[min(placed.number for placed in joined.placed)], Text(joined, alone))
            for joined in alone.texts
            if joined.placed
        ]
        return [text for _, text in sorted(ranked, key=lambda pair: pair[0])]
