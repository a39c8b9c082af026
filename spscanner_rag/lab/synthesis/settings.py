"""The numbers that decide what is made from which documents."""

from dataclasses import dataclass
from typing import Literal, get_args

Strategy = Literal["link", "chunk", "pair"]
Position = Literal["start", "middle", "end", "anywhere"]

STRATEGIES: tuple[str, ...] = get_args(Strategy)
POSITIONS: tuple[str, ...] = get_args(Position)


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesisSettings:
    """Settings of a run; a folder of results holds those of one set.

    Attributes
    ----------
    strategy : str, default "link"
        "link": a question that needs two far-apart parts of a document, which a language model connects. "chunk":
        a question on 20 consecutive sentences. "pair": a question on two chunks that an embedding model finds
        similar.
    seed : int, default 0
        Decides every draw.
    sizes : tuple of int, default (2000, 5000, 10000)
        Lengths of sub-documents in tokens of the bundled checkpoint.
    weights : tuple of float, default (1, 1, 1)
        How many sub-documents there should be of each size, relative to each other.
    per_document : int, default 1
        Most sub-documents of one document; they do not overlap.
    unit_tokens : int, default 20
        For "link": sentences are joined until a unit has this many tokens.
    chunk_units : int, default 5
        For "link": units of the chunk. The released code has 5, the paper's text 20 sentences.
    window_units, window_margin : int, default 200, 10
        For "link": the model sees this many units, which begin or end this many units from the chunk.
    chunk_widening, link_widening : int, default 2, 3
        For "link": units beside the chunk, and beside the linked unit, that may be relevant too. A link is farther
        away than their sum.
    chunk_sentences : int, default 20
        For "chunk" and "pair".
    positions : tuple of pairs, default ()
        Where in the sub-document the two sides of a link may be, such as ``(("start", "end"),)``: thirds of it,
        or "anywhere". Sub-documents take these pairs by turns; either side may be the chunk. Empty: anywhere.
    language : str, default "en"
        ISO 639-1 code of the language of documents and questions.
    language_probability : float, default 0.8
        Documents with a lower probability of that language are left out; 0 turns the detector off.
    boilerplate : bool, default True
        Leave out sub-documents of licences and copyright notices.
    min_words, max_share : int, float, default 10, 0.01
        Decontamination: a document is left out if test documents have more than this share of its sentences of at
        least so many words.
    test_share : float, default 0.0
        Share of the documents whose examples go to the test file instead of the training file.
    tries : int, default 3
        How often the model is asked for a reply in the right form.

    Raises
    ------
    ValueError
        For a value out of its range.
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
    language: str = "en"
    language_probability: float = 0.8
    boilerplate: bool = True
    min_words: int = 10
    max_share: float = 0.01
    test_share: float = 0.0
    tries: int = 3

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise ValueError(f"strategy: got {self.strategy!r}; expected one of {', '.join(STRATEGIES)}")
        least = dict.fromkeys(("per_document", "unit_tokens", "chunk_units", "chunk_sentences", "tries"), 1)
        least |= dict.fromkeys(("window_margin", "chunk_widening", "link_widening"), 0) | {"min_words": 1}
        least["window_units"] = self.chunk_units + self.window_margin + self.closest_link + 1
        for name, lowest in least.items():
            if type(value := getattr(self, name)) is not int or value < lowest:
                raise ValueError(f"{name}: got {value!r}; expected a whole number of at least {lowest}")
        if not self.sizes or any(type(size) is not int or size < 1 for size in self.sizes):
            raise ValueError(f"sizes: got {self.sizes!r}; expected numbers of tokens, at least 1")
        if len(self.weights) != len(self.sizes) or not all(weight > 0 for weight in self.weights):
            raise ValueError(f"weights: got {self.weights!r}; expected {len(self.sizes)} numbers above 0")
        for pair in self.positions:
            if len(pair) != 2 or not set(pair) <= set(POSITIONS):
                raise ValueError(f"positions: got {pair!r}; expected pairs of {', '.join(POSITIONS)}")
        for name in ("language_probability", "test_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name}: got {getattr(self, name)!r}; expected a number from 0 to 1")

    @property
    def closest_link(self) -> int:
        """A linked unit is more than this many units away from the chunk."""
        return self.chunk_widening + self.link_widening
