"""Settings of a run that makes questions from documents."""

from dataclasses import dataclass
from typing import Literal, get_args

Strategy = Literal["link", "chunk", "pair"]
Position = Literal["start", "middle", "end", "anywhere"]
QuestionFrom = Literal["parts", "connection"]

STRATEGIES: tuple[str, ...] = get_args(Strategy)
POSITIONS: tuple[str, ...] = get_args(Position)
QUESTIONS_FROM: tuple[str, ...] = get_args(QuestionFrom)

_AT_LEAST_ONE = (
    "per_document",
    "unit_tokens",
    "chunk_units",
    "chunk_sentences",
    "tries",
)
_AT_LEAST_ZERO = ("window_margin", "chunk_widening", "link_widening")


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesisSettings:
    """Settings of a run, of which a folder holds the results of one set only.

    The strategy "link" asks a question that needs two far-apart parts of a document,
    which a language model connects; "chunk" asks about consecutive sentences; "pair"
    about two chunks with similar embeddings. ``ValueError`` for a value out of range.

    Attributes
    ----------
    strategy : str
        "link", "chunk" or "pair".
    seed : int
        Determines every draw.
    sizes, weights : tuple
        Lengths of sub-documents, in tokens of the bundled checkpoint, and the relative
        number of sub-documents of each.
    per_document : int
        Most sub-documents of a document; they do not overlap.
    unit_tokens, chunk_units : int
        For "link": sentences are joined until a unit has this many tokens; units of a
        chunk. The released code has 5 units, the paper's text 20 sentences.
    window_units, window_margin : int
        For "link": the model sees this many units, which begin or end this many units
        from the chunk.
    chunk_widening, link_widening : int
        For "link": units on each side of the chunk, and of the linked unit, that may be
        relevant too; a link is farther away than their sum.
    chunk_sentences : int
        For "chunk" and "pair": sentences of a chunk.
    positions : tuple
        Thirds, or "anywhere", of the two sides of a link, in turn.
    question_from : str
        For "link": whether the model writes the question from the two "parts" and their
        connection, or from the "connection" alone, as in the paper (figure 8).
    reasons : bool
        Whether replies begin with a reason, as those of the paper do (appendix B).
    language, language_probability : str, float
        ISO 639-1 code of documents and questions; less probable documents are left out,
        and 0 turns the detector off.
    boilerplate : bool
        Whether to leave out sub-documents of licences and copyright notices.
    test_share : float
        Share of the documents whose examples go to the test file.
    tries : int
        How often the model is asked for a reply in the right form.

    Examples
    --------
    >>> from spscanner_lab.synthesis.settings import SynthesisSettings
    >>> SynthesisSettings(strategy="chunk", sizes=(2000,), weights=(1.0,)).closest_link
    5
    """

    strategy: Strategy = "link"
    seed: int = 0
    sizes: tuple[int, ...] = (2000, 5000, 10000)
    weights: tuple[float, ...] = (1.0, 1.0, 1.0)
    per_document: int = 1
    unit_tokens: int = 20
    chunk_units: int = 5
    window_units: int = 200
    window_margin: int = 10
    chunk_widening: int = 2
    link_widening: int = 3
    chunk_sentences: int = 20
    positions: tuple[tuple[str, str], ...] = ()
    question_from: QuestionFrom = "parts"
    reasons: bool = False
    language: str = "en"
    language_probability: float = 0.8
    boilerplate: bool = True
    test_share: float = 0.0
    tries: int = 3

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise ValueError(
                f"strategy: got {self.strategy!r}; expected one of"
                f" {', '.join(STRATEGIES)}"
            )
        if self.question_from not in QUESTIONS_FROM:
            raise ValueError(
                f"question_from: got {self.question_from!r}; expected one of"
                f" {', '.join(QUESTIONS_FROM)}"
            )
        for name in _AT_LEAST_ONE:
            self._check_whole(name, 1)
        for name in _AT_LEAST_ZERO:
            self._check_whole(name, 0)
        window = self.chunk_units + self.window_margin + self.closest_link + 1
        self._check_whole("window_units", window)
        self._check_sizes()
        self._check_positions()
        for name in ("language_probability", "test_share"):
            share = getattr(self, name)
            if not 0 <= share <= 1:
                raise ValueError(
                    f"{name}: got {share!r}; expected a number from 0 to 1"
                )

    @property
    def closest_link(self) -> int:
        """A linked unit must be more than this many units away from the chunk."""
        return self.chunk_widening + self.link_widening

    def _check_whole(self, name: str, least: int) -> None:
        value = getattr(self, name)
        if type(value) is not int or value < least:
            raise ValueError(
                f"{name}: got {value!r}; expected a whole number of at least {least}"
            )

    def _check_sizes(self) -> None:
        are_sizes = all(type(size) is int and size >= 1 for size in self.sizes)
        if not self.sizes or not are_sizes:
            raise ValueError(
                f"sizes: got {self.sizes!r}; expected numbers of tokens, at least 1"
            )
        are_positive = all(weight > 0 for weight in self.weights)
        if len(self.weights) != len(self.sizes) or not are_positive:
            raise ValueError(
                f"weights: got {self.weights!r}; expected {len(self.sizes)} numbers"
                " above 0"
            )

    def _check_positions(self) -> None:
        for pair in self.positions:
            if len(pair) != 2 or not set(pair) <= set(POSITIONS):
                raise ValueError(
                    f"positions: got {pair!r}; expected pairs of {', '.join(POSITIONS)}"
                )
