"""Finds the language of documents and questions."""

from typing import Any

from spscanner_rag.system.install_hints import import_extra

_PART_CHARACTERS = 1_500
_MISTAKEN = 0.5
"""From this probability on, a question counts as in another language.

Short texts are hard to tell.
"""


class LanguageDetector:
    """Finds the language of a text with py3langid, which works offline."""

    def __init__(self) -> None:
        owner = "the language filter (--language-probability 0 leaves it out)"
        library = import_extra("py3langid.langid", owner, "synthesize")
        self._model: Any = library.LanguageIdentifier.from_model_file(
            library.MODEL_FILE, norm_probs=True
        )

    def probability(self, text: str, language: str) -> float:
        """Return the probability that a text is in a language.

        Of long texts it reads three parts.
        """
        if len(text) > 3 * _PART_CHARACTERS:
            starts = (0, len(text) // 2, len(text) - _PART_CHARACTERS)
            parts = [text[start : start + _PART_CHARACTERS] for start in starts]
            text = "\n".join(parts)
        return float(dict(self._model.rank(text)).get(language, 0.0))

    def is_other(self, question: str, language: str) -> bool:
        """True if a question is clearly in another language."""
        likeliest, probability = self._model.classify(question)
        return likeliest != language and float(probability) >= _MISTAKEN
