"""A cache of texts that are cut into units and tokenized."""

from collections import OrderedDict

from spscanner_rag.lab.training.data.document_store import DocumentStore
from spscanner_rag.scan.prepare import PreparedText, Reading

KEPT_CHARACTERS = 20_000_000
"""Characters of the texts in memory, which take about 300 MB when they are prepared."""


class PreparedTexts:
    """The documents of a store, cut into units and tokenized.

    The most recently used texts stay in memory, up to ``kept_characters`` in total; the last one always stays.
    """

    def __init__(
        self, documents: DocumentStore, reading: Reading, kept_characters: int = KEPT_CHARACTERS
    ) -> None:
        self._documents, self._reading, self._most = documents, reading, kept_characters
        self._kept: OrderedDict[int, tuple[str, PreparedText]] = OrderedDict()
        self.characters = 0

    def get(self, number: int) -> tuple[str, PreparedText]:
        """Text ``number`` of the store, and that text prepared."""
        if number in self._kept:
            self._kept.move_to_end(number)
            return self._kept[number]
        text = self._documents.document(number).text
        self._kept[number] = text, self._reading.prepare(text)
        self.characters += len(text)
        while self.characters > self._most and len(self._kept) > 1:
            _, (oldest, _) = self._kept.popitem(last=False)
            self.characters -= len(oldest)
        return self._kept[number]
