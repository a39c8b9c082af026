r"""Documents to make data from, in files, folders, LlamaIndex and LangChain, and random stretches of them.

``.txt``, ``.txt.gz`` and ``.txt.xz`` files hold documents separated by a line that
holds only ``\x1e``. Each line of a ``.jsonl`` or ``.jsonl.gz`` file is an object with
the document under ``"text"``, its name under ``"doc_id"`` or ``"id"``, and optionally a
``"title"`` and a ``"source"``. Any other file is one document of UTF-8 text.
"""

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from spscanner_lab.evidence.data_lines import (
    expecting,
    json_objects,
    numbered_lines,
    require,
)
from spscanner_lab.evidence.questions import Document
from spscanner_lab.training.data.decontamination import SharedTextFinder, hash_of
from spscanner_rag.files.folders import regular_files
from spscanner_rag.files.reading import read
from spscanner_rag.system.install_hints import import_extra
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.surrogates import replace_surrogates
from spscanner_rag.text.token_counts import CountTokens
from spscanner_rag.text.units import Segmenter

Strategy = Literal["link", "chunk", "pair"]
Position = Literal["start", "middle", "end", "anywhere"]

STRATEGIES: tuple[str, ...] = get_args(Strategy)
POSITIONS: tuple[str, ...] = get_args(Position)


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesisSettings:
    """Settings of a run; a folder holds the results of one set only.

    ``ValueError`` for a value out of range.

    The strategy "link" asks a question that needs two far-apart parts of a document,
    which a language model connects; "chunk" asks about consecutive sentences; "pair"
    about two chunks with similar embeddings.
    """

    strategy: Strategy = "link"
    seed: int = 0  # determines every draw
    sizes: tuple[int, ...] = (
        2000,
        5000,
        10000,
    )  # of sub-documents, in tokens of the bundled checkpoint
    weights: tuple[float, ...] = (
        1.0,
        1.0,
        1.0,
    )  # relative number of sub-documents of each size
    per_document: int = (
        1  # maximum number of sub-documents of a document; they do not overlap
    )
    unit_tokens: int = (
        20  # "link": sentences are joined until a unit has this many tokens
    )
    chunk_units: int = (
        5  # "link": the released code has 5, the paper's text 20 sentences
    )
    window_units: int = 200  # "link": the model sees this many units,
    window_margin: int = 10  # which begin or end this many units from the chunk
    chunk_widening: int = (
        2  # "link": units on each side of the chunk that may be relevant too,
    )
    link_widening: int = (
        3  # and on each side of the linked unit; a link is farther away than their sum
    )
    chunk_sentences: int = 20  # "chunk" and "pair"
    positions: tuple[
        tuple[str, str], ...
    ] = ()  # thirds, or "anywhere", of the two sides of a link, in turn
    language: str = "en"  # ISO 639-1 code of documents and questions
    language_probability: float = (
        0.8  # less probable documents are left out; 0 turns the detector off
    )
    boilerplate: bool = (
        True  # whether to leave out sub-documents of licences and copyright notices
    )
    test_share: float = 0.0  # share of the documents whose examples go to the test file
    tries: int = 3  # how often the model is asked for a reply in the right form

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise ValueError(
                f"strategy: got {self.strategy!r}; expected one of"
                f" {', '.join(STRATEGIES)}"
            )
        least = dict.fromkeys(
            ("per_document", "unit_tokens", "chunk_units", "chunk_sentences", "tries"),
            1,
        )
        least |= dict.fromkeys(("window_margin", "chunk_widening", "link_widening"), 0)
        least["window_units"] = (
            self.chunk_units + self.window_margin + self.closest_link + 1
        )
        for name, lowest in least.items():
            if type(value := getattr(self, name)) is not int or value < lowest:
                raise ValueError(
                    f"{name}: got {value!r}; expected a whole number of at least"
                    f" {lowest}"
                )
        if not self.sizes or any(
            type(size) is not int or size < 1 for size in self.sizes
        ):
            raise ValueError(
                f"sizes: got {self.sizes!r}; expected numbers of tokens, at least 1"
            )
        if len(self.weights) != len(self.sizes) or not all(
            weight > 0 for weight in self.weights
        ):
            raise ValueError(
                f"weights: got {self.weights!r}; expected {len(self.sizes)} numbers"
                " above 0"
            )
        for pair in self.positions:
            if len(pair) != 2 or not set(pair) <= set(POSITIONS):
                raise ValueError(
                    f"positions: got {pair!r}; expected pairs of {', '.join(POSITIONS)}"
                )
        for name in ("language_probability", "test_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(
                    f"{name}: got {getattr(self, name)!r}; expected a number from 0"
                    " to 1"
                )

    @property
    def closest_link(self) -> int:
        """A linked unit must be more than this many units away from the chunk."""
        return self.chunk_widening + self.link_widening


_SEPARATOR = "\x1e"  # on a line of its own, between two documents
_TEXTS = (".txt", ".txt.gz", ".txt.xz")
_LINES = (".jsonl", ".jsonl.gz")
_IN_FOLDERS = (*_TEXTS, *_LINES, ".md", ".rst", ".text")


def source_files(paths: Sequence[Path]) -> list[Path]:
    """Return the files among these paths and, sorted, in these folders.

    ``ValueError`` if a path has none.
    """
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise ValueError(
                f"{path}: no such file; expected a file of text, or a folder: check the"
                " path"
            )
        if not path.is_dir():
            found.append(path)
            continue
        inside, _, _ = regular_files(str(path), _IN_FOLDERS)
        if not inside:
            raise ValueError(
                f"{path}: got a folder without text; expected files in"
                f" {', '.join(_IN_FOLDERS)}"
            )
        found += sorted(map(Path, inside))
    return found


def read_sources(paths: Iterable[Path]) -> Iterator[Document]:
    """Yield documents of files, in order.

    `DataError` for a bad line, ``ValueError`` for a file without text.
    """
    for path in paths:
        if path.name.endswith(_LINES):
            yield from _read_lines(path)
        elif path.name.endswith(_TEXTS):
            source = _source_of(path)
            for number, text in enumerate(_texts(path), 1):
                if text.strip():
                    yield Document(f"{source}-{number}", source, "", text, ())
        else:
            yield Document(path.name, _source_of(path), "", read(path).text, ())


def framework_documents(documents: Iterable[object]) -> Iterator[Document]:
    """Yield documents of LlamaIndex (``Document``, ``TextNode``) or LangChain (``Document``), by their methods."""
    for number, document in enumerate(documents, 1):
        metadata = getattr(document, "metadata", None)
        metadata = metadata if isinstance(metadata, Mapping) else {}
        text = getattr(document, "page_content", None)
        name = getattr(document, "id", None)
        if text is None and callable(content := getattr(document, "get_content", None)):
            text, name = (
                content(),
                getattr(document, "node_id", None),
            )  # by default without metadata
        if not isinstance(text, str):
            raise TypeError(
                f"document {number} is {type(document).__name__}; expected a Document"
                " of LlamaIndex or LangChain"
            )
        title = str(metadata.get("title") or "")
        place = metadata.get("source") or metadata.get("file_name")
        yield Document(
            str(name or place or f"document-{number}"), "documents", title, text, ()
        )


def _read_lines(path: Path) -> Iterator[Document]:
    expected = "a JSON object with a document under 'text'"
    for number, record in json_objects(path, expected):
        text, title = record.get("text"), record.get("title")
        require(isinstance(text, str), expected, text, f"{path}, line {number}")
        name = (
            record.get("doc_id") or record.get("id") or f"{_source_of(path)}-{number}"
        )
        source = str(record.get("source") or _source_of(path))
        yield Document(str(name), source, str(title) if title else "", str(text), ())


def _texts(path: Path) -> Iterator[str]:
    lines: list[str] = []
    for number, raw in numbered_lines(path):
        with expecting("UTF-8", f"{path}, line {number}"):
            line = raw.decode("utf-8")
        if line.rstrip("\r\n") == _SEPARATOR:
            yield "".join(lines)
            lines = []
        else:
            lines.append(line)
    yield "".join(lines)


def _source_of(path: Path) -> str:
    r"""A file's name without endings.

    A JSON Lines file, often called ``train``, gets its folder's name as well.

    Bytes of the name that are not UTF-8 become escapes, such as ``\udcff``, since
    results could not hold them.
    """
    path = Path(str(path).encode("utf-8", "backslashreplace").decode())
    name = path.name
    for ending in (*_TEXTS, *_LINES):
        name = name.removesuffix(ending)
    return (
        f"{path.parent.name}/{name}".lstrip("/") if path.name.endswith(_LINES) else name
    )


_SAMPLE_CHARACTERS = 4_000
_LEAST_SHARE = (
    0.5  # a document with less than this share of the smallest size is left out
)
_PART_CHARACTERS = 1_500
_BOILERPLATE_SHARE = 0.15
_MISTAKEN = 0.5
"""From this probability on, a question counts as in another language: short texts
are hard to tell."""
_NAMED = 20  # most documents that are named because they share text with test documents

_BOILERPLATE = re.compile(
    r"\ball rights"
    r" reserved\b|\bcopyright\b\s*(?:\(c\)|©|\d{4}|holders?\b|notice\b|owners?\b)|©\s*\d{4}|"
    r"\bpermission is hereby granted\b|\bwithout"
    r" warrant(?:y|ies)\b|\bmerchantability\b|"
    r"\blicen[sc]ed under\b|\bthis licen[sc]e\b|\bthe"
    r" licen[sc]e\b.{0,40}\b(?:terms|agreement|copy)\b|"
    r"\bproject gutenberg\b|\bcreative"
    r" commons\b|\b(?:gnu|apache|mit|bsd)\b.{0,20}\blicen[sc]e\b|"
    r"\bterms of (?:use|service)\b|\bprivacy policy\b|\bisbn\b",
    re.IGNORECASE,
)
_NOTICE = re.compile(
    r"\b(?:copyright|licen[sc]e notice|licensing terms|all rights reserved)\b",
    re.IGNORECASE,
)


class Sentence(NamedTuple):
    """A sentence of a sub-document: its span and its number of tokens."""

    start: int
    end: int
    tokens: int


@dataclass(frozen=True, slots=True)
class SubDocument:
    """A stretch of a document."""

    number: int  # from 0, in reading order
    doc_id: str  # the document's id, followed by the place of the first character
    source: str
    title: str
    text: str
    size: int  # intended size, in tokens
    sentences: tuple[Sentence, ...]
    held_out: bool = False  # its example belongs to the test file

    @property
    def tokens(self) -> int:
        """The number of tokens in the sentences."""
        return sum(sentence.tokens for sentence in self.sentences)


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
            starts = 0, len(text) // 2, len(text) - _PART_CHARACTERS
            text = "\n".join(text[start : start + _PART_CHARACTERS] for start in starts)
        return float(dict(self._model.rank(text)).get(language, 0.0))

    def is_other(self, question: str, language: str) -> bool:
        """True if a question is clearly in another language."""
        found, probability = self._model.classify(question)
        return found != language and float(probability) >= _MISTAKEN


def is_about_a_notice(text: str) -> bool:
    """True if a connection or a question is about a licence or copyright notice."""
    return bool(_NOTICE.search(text) or _BOILERPLATE.search(text))


def is_new(text: str, seen: set[int]) -> bool:
    """Note a text, ignoring case and white space; False if it was noted before."""
    before = len(seen)
    seen.add(hash_of(text.split()))
    return len(seen) > before


@dataclass(slots=True)
class Supply:
    """Sub-documents of a stream of documents, one at a time.

    How often each size comes depends on its weight.

    A document too short for a size gets a smaller one. The stretches that are cut from
    a document depend on the seed and, through the sizes that came before, on earlier
    documents.
    """

    settings: SynthesisSettings
    count_tokens: CountTokens
    detector: LanguageDetector | None = None  # None takes documents in every language
    finder: SharedTextFinder | None = (
        None  # finds text that documents share with test documents
    )
    documents: int = 0  # read so far
    left_out: Counter[str] = field(
        default_factory=Counter
    )  # documents and sub-documents, by reason
    contaminated: list[str] = field(
        default_factory=list
    )  # the first that share text with test documents
    _made: Counter[int] = field(
        default_factory=Counter, init=False
    )  # sub-documents of each size

    def of(self, documents: Iterable[Document]) -> Iterator[SubDocument]:
        """Yield the sub-documents of documents, numbered from 0."""
        seen, names, segmenter = (
            set[int](),
            set[int](),
            SentenceSegmenter(self.settings.language),
        )
        for document in documents:
            self.documents += 1
            if reason := self._reason(document, seen):
                self.left_out[reason] += 1
                continue
            name, number = document.doc_id, 1
            while not is_new(
                f"{document.source}\n{name}", names
            ):  # another document has the same id
                number += 1
                name = f"{document.doc_id}~{number}"
            before = self._made.total()
            yield from self._cut(replace(document, doc_id=name), segmenter)
            if self._made.total() == before:
                self.left_out["too short"] += 1

    def _reason(self, document: Document, seen: set[int]) -> str | None:
        settings = self.settings
        if not document.text.strip():
            return "empty"
        if not is_new(document.text, seen):
            return "a duplicate"
        if self.detector is not None:
            probability = self.detector.probability(document.text, settings.language)
            if probability < settings.language_probability:
                return "in another language"
        if (
            self.finder is not None
            and (shared := self.finder.find(document)) is not None
        ):
            if len(self.contaminated) < _NAMED:
                self.contaminated.append(
                    f"{document.doc_id}: {shared.share:.1%} of its sentences, most with"
                    f" {shared.held_out_doc_id}: {shared.example:.200}"
                )
            return "shares text with a test document"
        return None

    def _cut(self, document: Document, segmenter: Segmenter) -> Iterator[SubDocument]:
        """The sub-documents of a document; none if it is too short."""
        text, settings = document.text, self.settings
        # from the middle, since the tokens of a book's front matter differ
        begin = max(0, (len(text) - _SAMPLE_CHARACTERS) // 2)
        sample = replace_surrogates(text[begin : begin + _SAMPLE_CHARACTERS])
        width = len(sample) / max(1, self.count_tokens(sample))  # characters of a token
        tokens, least = len(text) / width, min(settings.sizes) * _LEAST_SHARE
        if tokens < least:
            return
        digest = blake2b(
            f"{settings.seed}\n{text}".encode("utf-8", "replace"), digest_size=8
        ).hexdigest()
        draw = random.Random(digest)
        held_out = draw.random() < settings.test_share
        size = self._next_size(tokens)
        slots = min(settings.per_document, max(1, int(tokens // size)))
        for slot in range(slots):
            low, high = len(text) * slot // slots, len(text) * (slot + 1) // slots
            drawn = draw.randint(low, max(low, high - int(size * width)))
            start = 0 if tokens <= size else drawn
            stop = min(high, start + int(1.5 * size * width) + 2_000)
            sentences = self._sentences(text, start, stop, size, segmenter)
            if sum(sentence.tokens for sentence in sentences) < least:
                continue
            first, last = sentences[0].start, sentences[-1].end
            number = self._made.total()
            self._made[size] += 1
            notices = sum(
                bool(_BOILERPLATE.search(text, *sentence[:2])) for sentence in sentences
            )
            if settings.boilerplate and notices > _BOILERPLATE_SHARE * len(sentences):
                self.left_out["licences and copyright notices"] += 1
                continue
            moved = tuple(
                Sentence(start - first, end - first, count)
                for start, end, count in sentences
            )
            name, own = f"{document.doc_id}@{first}", text[first:last]
            yield SubDocument(
                number,
                name,
                document.source,
                document.title,
                own,
                size,
                moved,
                held_out,
            )

    def _next_size(self, tokens: float) -> int:
        """Of the sizes that a document is long enough for, the one that is furthest behind its weight."""
        settings = self.settings
        fitting = [size for size in settings.sizes if size <= 1.1 * tokens] or [
            min(settings.sizes)
        ]
        weights = dict(zip(settings.sizes, settings.weights, strict=True))
        return min(fitting, key=lambda size: (self._made[size] / weights[size], -size))

    def _sentences(
        self, text: str, start: int, stop: int, size: int, segmenter: Segmenter
    ) -> list[Sentence]:
        """Whole sentences of a stretch, as many as fit into ``size`` tokens, but at least one."""
        found: list[Sentence] = []
        total = 0
        units = segmenter.segment(text[start:stop])
        for unit in units[
            int(start > 0) : len(units) - int(stop < len(text))
        ]:  # ends may be cut off
            span = start + unit.start, start + unit.end
            tokens = self.count_tokens(replace_surrogates(text[slice(*span)]))
            if found and total + tokens > size:
                break
            total += tokens
            found.append(Sentence(*span, tokens))
        return found


def joined_units(
    sentences: Sequence[Sentence], least_tokens: int
) -> list[tuple[int, int]]:
    """Spans of units: sentences joined until each unit has ``least_tokens``.

    A rest joins the last unit.
    """
    units: list[tuple[int, int]] = []
    tokens = least_tokens
    for sentence in sentences:
        if tokens >= least_tokens:
            units.append(sentence[:2])
            tokens = sentence.tokens
        else:
            units[-1] = units[-1][0], sentence.end
            tokens += sentence.tokens
    if tokens < least_tokens and len(units) > 1:
        _, end = units.pop()
        units[-1] = units[-1][0], end
    return units
