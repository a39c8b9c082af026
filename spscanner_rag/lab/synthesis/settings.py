"""The numbers that decide what is made from which documents."""

from dataclasses import dataclass
from typing import Literal, get_args

Strategy = Literal["link", "chunk", "pair"]
Position = Literal["start", "middle", "end", "anywhere"]

STRATEGIES: tuple[str, ...] = get_args(Strategy)
POSITIONS: tuple[str, ...] = get_args(Position)


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesisSettings:
    """Settings of a run; a folder of results holds those of one set. ``ValueError`` for a value out of its range.

    The strategy "link" is a question that needs two far-apart parts of a document, which a language model
    connects; "chunk" one on consecutive sentences; "pair" one on two chunks with similar embeddings.
    """

    strategy: Strategy = "link"
    seed: int = 0  # decides every draw
    sizes: tuple[int, ...] = (2000, 5000, 10000)  # of sub-documents, in tokens of the bundled checkpoint
    weights: tuple[float, ...] = (1.0, 1.0, 1.0)  # how many there should be of each size
    per_document: int = 1  # most sub-documents of one document; they do not overlap
    unit_tokens: int = 20  # "link": sentences are joined until a unit has this many tokens
    chunk_units: int = 5  # "link"; the released code has 5, the paper's text 20 sentences
    window_units: int = 200  # "link": the model sees this many units,
    window_margin: int = 10  # which begin or end this many units from the chunk
    chunk_widening: int = 2  # "link": units beside the chunk that may be relevant too,
    link_widening: int = 3  # and beside the linked unit; a link is farther away than their sum
    chunk_sentences: int = 20  # "chunk" and "pair"
    positions: tuple[tuple[str, str], ...] = ()  # thirds, or "anywhere", of the two sides of a link, by turns
    language: str = "en"  # ISO 639-1 code of documents and questions
    language_probability: float = 0.8  # documents below are left out; 0 turns the detector off
    boilerplate: bool = True  # leave out sub-documents of licences and copyright notices
    test_share: float = 0.0  # share of the documents whose examples go to the test file
    tries: int = 3  # how often the model is asked for a reply in the right form

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise ValueError(f"strategy: got {self.strategy!r}; expected one of {', '.join(STRATEGIES)}")
        least = dict.fromkeys(("per_document", "unit_tokens", "chunk_units", "chunk_sentences", "tries"), 1)
        least |= dict.fromkeys(("window_margin", "chunk_widening", "link_widening"), 0)
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
