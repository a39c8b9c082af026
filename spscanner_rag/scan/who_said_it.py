"""What others say than those whose words a question asks for."""

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.text.language_parts import UNKNOWN, question_language
from spscanner_rag.text.languages import ENGLISH
from spscanner_rag.text.speakers import NOBODY, Speakers, asked_speakers


def said_by_others(query: str, speakers: Speakers) -> NDArray[np.bool_] | None:
    """Return which sentences others say than those whose words are asked for.

    Parameters
    ----------
    query : str
        The question.
    speakers : Speakers
        Who says each sentence of a text.

    Returns
    -------
    array (sentences,) or None
        None if the question asks for nobody's words, or is not in English.

    Examples
    --------
    >>> from spscanner_rag.scan.who_said_it import said_by_others
    >>> from spscanner_rag.text.speakers import speakers_of
    >>> chat = ["Ann: I left.", "Ben: I stayed.", "Ann: Why?", "Ben: It rained."]
    >>> said_by_others("What did Ann do?", speakers_of(chat)).tolist()
    [False, True, False, True]
    """
    if not speakers.names or question_language(query) not in (ENGLISH, UNKNOWN):
        return None
    asked = asked_speakers(query, speakers.names)
    if not asked:
        return None
    has_speaker = speakers.of_sentences != NOBODY
    is_asked = np.isin(speakers.of_sentences, list(asked))
    return np.asarray(has_speaker & ~is_asked, np.bool_)
