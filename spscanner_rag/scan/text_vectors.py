"""The vectors of one text, each made by an encoder that a question needs."""

from spscanner_rag.encoder.sentence_vectors import SentenceVectors
from spscanner_rag.scan.indexed_text import IndexedText
from spscanner_rag.scan.meter import Meter
from spscanner_rag.scan.reading import Reading


class TextVectors:
    """The vectors of a text's units that were made for questions so far.

    A German question on an English text needs only the vectors of the encoder of other
    languages, so the text is not read by its own.

    Parameters
    ----------
    reading : Reading
        Makes the vectors.
    indexed : IndexedText
        The text.
    own : SentenceVectors, optional
        Those by the encoder of the text's language, if they are made already.
    """

    def __init__(
        self, reading: Reading, indexed: IndexedText, own: SentenceVectors | None
    ) -> None:
        self._reading = reading
        self._indexed = indexed
        self._own = own
        self._of_other: SentenceVectors | None = None  # for questions of any text

    def for_question(self, query: str, meter: Meter) -> SentenceVectors | None:
        """Return the vectors with which a question is matched, (units, width).

        None without an encoder.
        """
        reader = self._reading.reader_for(query)
        if reader is None:
            if self._own is None:
                self._own = self._reading.vectors(self._indexed, meter)
            return self._own
        if self._of_other is None:
            steps = (meter.expect, meter.after_step)
            sentences = self._indexed.sentences
            if self._own is None:
                self._of_other = reader.vectors(sentences, *steps)
            else:
                self._of_other = reader.own_vectors(self._own, sentences, *steps)
        return self._of_other
