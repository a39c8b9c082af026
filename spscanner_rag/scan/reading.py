"""How a checkpoint reads a text: cut, tokenized, matched with the question."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

from tokenizers import Tokenizer

from spscanner_rag.checkpoint.config import ScannerSettings
from spscanner_rag.checkpoint.loaded import LoadedCheckpoint
from spscanner_rag.encoder.across_languages import reads_across
from spscanner_rag.encoder.meaning import Meaning
from spscanner_rag.encoder.meaning_by_language import EXTRA as MULTILINGUAL
from spscanner_rag.encoder.sentence_vectors import SentenceVectors
from spscanner_rag.lexical.lexical_scores import LexicalStatistics, MatchOptions
from spscanner_rag.lexical.match import LexicalMatch, match_query, query_features
from spscanner_rag.lexical.names_and_numbers import names_and_numbers
from spscanner_rag.lexical.number_forms import numbers_as_written
from spscanner_rag.lexical.word_vectors import WordVectors
from spscanner_rag.lexical.words import index_words
from spscanner_rag.lexical.written_forms import DECIMAL_COMMA
from spscanner_rag.mamba2.sentence_scan_shape import ScansSentences
from spscanner_rag.results.passages import Located
from spscanner_rag.scan.indexed_text import IndexedText
from spscanner_rag.scan.meter import Meter
from spscanner_rag.scan.prepared_document import PreparedDocument
from spscanner_rag.scan.query_on_text import QueryOnText
from spscanner_rag.scan.sentence_features import sentence_features
from spscanner_rag.text.asking_part import asking_part
from spscanner_rag.text.block_segmentation import segment_blocks
from spscanner_rag.text.blocks import Block, StructuredText
from spscanner_rag.text.folding import fold_units, folded
from spscanner_rag.text.language_parts import UNKNOWN, question_language
from spscanner_rag.text.segmentation import SentenceSegmenter
from spscanner_rag.text.sentence_marks import question_marks
from spscanner_rag.text.tokenization import EndRule, encode_question, tokenize_units
from spscanner_rag.text.turns import turns_of
from spscanner_rag.text.units import Segmenter, Unit


class ReadQuestion(NamedTuple):
    """What is read of a question."""

    n_tokens: int  # of the question
    # what the models read alone, where a situation is told before it
    asking_part: str | None = None
    asked_tokens: int | None = None  # of that, or of the question
    # at the end of it; None without a cross-reader
    cross_reader_tokens: int | None = None


REANCHOR_QUESTIONS = 4
"""The question is repeated at most once in this many times its own length, however
small the checkpoint's ``reanchor_tokens``: a very long question would otherwise
multiply the work."""


StatisticsOf = Callable[[str], LexicalStatistics]
"""Returns how often a collection has the words of a question."""

FEWEST_SCANNED = 30
"""A sentence scan compares the sentences of a text, of which a short one has too few:
its training reads no fewer."""

WORD_SHARE = 8
"""The column of `LexicalMatch.scores` with a unit's BM25 as a share of the largest
possible one."""


def do_nothing() -> None:
    """Return at once: the step between two parts of a text that nobody watches."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Reads any text as a checkpoint was trained to read it.

    Methods that take ``between_parts`` call it regularly; it may raise.
    """

    tokenizer: Tokenizer
    segmenter: Segmenter
    settings: ScannerSettings
    word_vectors: WordVectors | None = None
    # its cosines count in addition to the model's logits
    meaning: Meaning | None = None
    # estimates logits before the model reads
    sentence_scan: ScansSentences | None = None

    @classmethod
    def of(
        cls, checkpoint: LoadedCheckpoint, segmenter: Segmenter | str | None = None
    ) -> Self:
        """Return a checkpoint's reading, with its own segmenter by default."""
        if segmenter is None or isinstance(segmenter, str):
            segmenter = SentenceSegmenter()
        sentence_scan = None
        if checkpoint.meaning is not None:
            sentence_scan = checkpoint.sentence_scan
        return cls(
            checkpoint.tokenizer,
            segmenter,
            checkpoint.settings,
            checkpoint.word_vectors,
            checkpoint.meaning,
            sentence_scan,
        )

    @property
    def match_options(self) -> MatchOptions:
        """How a question's words are matched."""
        return MatchOptions(
            self.settings.surroundings,
            self.settings.least_units,
            self.word_vectors,
            texts=self.settings.text_weight > 0,
        )

    @property
    def folds(self) -> bool:
        """True unless texts are read unchanged, as a published scanner reads them."""
        return self.settings.segmenter != "reference"

    @property
    def lexical(self) -> bool:
        """True if logits depend on the words of the collection that a text is in."""
        return self.settings.match or self.settings.prior

    def prepare(
        self,
        document: str | StructuredText,
        units: Sequence[Unit] | None = None,
        meter: Meter | None = None,
    ) -> PreparedDocument:
        """Prepare a document for any number of questions.

        See `Scanner.prepare`.
        """
        meter = Meter() if meter is None else meter
        text = document if isinstance(document, str) else document.text
        blocks = () if isinstance(document, str) else tuple(document.blocks)
        if units is None and blocks:
            units = self.cut_blocks(text, blocks, meter.check)
        indexed = self.index_text(text, units, meter.check)
        return PreparedDocument(
            text,
            blocks,
            indexed,
            self.vectors(indexed, meter),
            location_in(document),
            self,
        )

    def index_text(
        self,
        text: str,
        units: Sequence[Unit] | None = None,
        between_parts: Callable[[], None] = do_nothing,
    ) -> IndexedText:
        """Cut (unless there are ``units``), tokenize and index a text."""
        units = self.folded_units(text, units, between_parts)
        # on which token a unit's logit sits
        end_rule: EndRule = "last_character" if self.folds else "contained"
        tokenized = tokenize_units(
            self.tokenizer, units, end_rule, between_parts=between_parts
        )
        indexed = IndexedText(**vars(tokenized))
        if self.lexical:
            # now, because `between_parts` can stop it; the property then has it
            vars(indexed)["words"] = index_words(
                indexed.sentences, between_parts=between_parts, fold=False
            )
        return indexed

    def vectors(self, indexed: IndexedText, meter: Meter) -> SentenceVectors | None:
        """Return the vectors of the units, (units, width).

        None without an encoder.
        """
        if self.meaning is None:
            return None
        return self.meaning.vectors(indexed.sentences, meter.expect, meter.after_step)

    def reader_for(self, query: str) -> Meaning | None:
        """Return the encoder that a question needs, whatever the text.

        None if the text decides, or without an encoder.
        """
        if self.meaning is None:
            return None
        return self.meaning.reader_for(folded(query) if self.folds else query)

    def folded_units(
        self,
        text: str,
        units: Sequence[Unit] | None,
        between_parts: Callable[[], None],
    ) -> Sequence[Unit]:
        """Return the units of a text as the model and an encoder read them.

        The text is cut if there are no ``units``.
        """
        if units is None:
            units = self.cut(text, between_parts)
        return fold_units(units) if self.folds else units

    def cut(
        self, text: str, between_parts: Callable[[], None] = do_nothing
    ) -> Sequence[Unit]:
        """Cut a text with the segmenter."""
        # A subclass of it may have another `segment`.
        if type(self.segmenter) is not SentenceSegmenter:
            return self.segmenter.segment(text)
        turns = turns_of(text)
        if turns:
            return self.cut_blocks(text, turns, between_parts)
        return self.segmenter.segment_in_parts(text, between_parts)

    def cut_blocks(
        self,
        text: str,
        blocks: Iterable[Block],
        between_parts: Callable[[], None] = do_nothing,
    ) -> Sequence[Unit]:
        """Cut a text with blocks, all by the language of the whole."""

        def watched() -> Iterator[Block]:
            for block in blocks:
                between_parts()
                yield block

        if type(self.segmenter) is not SentenceSegmenter:
            return segment_blocks(text, watched(), self.segmenter.segment)
        segmenter = self.segmenter.for_text(text)

        def cut_part(part: str) -> list[Unit]:
            return segmenter.segment_in_parts(part, between_parts)

        return segment_blocks(text, watched(), cut_part)

    def _scans(self, text: IndexedText) -> bool:
        """Whether the sentence scan reads a text: one of its own training's lengths."""
        return self.sentence_scan is not None and len(text.units) >= FEWEST_SCANNED

    def pair(
        self,
        query: str,
        text: IndexedText,
        statistics: StatisticsOf | None = None,
        vectors: SentenceVectors | None = None,
    ) -> QueryOnText:
        """Match a question with a text, which is by default its own collection.

        With an encoder, the scores are means of those of the whole question and of the
        part that asks, and the models read that part. A situation that is told before
        it is about much that the text does not say.
        """
        if self.folds:
            query = _with_numbers_as_written(folded(query), text)
        if self.meaning is None:
            return self._match(query, text, statistics)
        if vectors is None:
            vectors = self.meaning.vectors(text.sentences)
        meaning = self.meaning.of_question(query, vectors)
        if meaning is None:
            return self._match(query, text, statistics)
        vectors = meaning.own_vectors(vectors, text.sentences)
        on_text = self._match(query, text, statistics, vectors, meaning)
        part = asking_part(query)
        if part is None:
            return on_text
        part_on_text = self._match(part, text, statistics, vectors, meaning)
        return part_on_text.averaged_with(on_text)

    def read_of(self, query: str) -> ReadQuestion:
        """Return what is read of a question."""
        query = folded(query) if self.folds else query
        n_tokens = len(encode_question(self.tokenizer, query)[0])
        if self.meaning is None:
            return ReadQuestion(n_tokens)
        part = asking_part(query)
        asking = query if part is None else part
        cross = self.meaning.cross
        return ReadQuestion(
            n_tokens,
            part,
            len(encode_question(self.tokenizer, asking)[0]),
            None if cross is None else len(cross.question_ids(asking)),
        )

    def _match(
        self,
        query: str,
        text: IndexedText,
        statistics: StatisticsOf | None,
        vectors: SentenceVectors | None = None,
        meaning: Meaning | None = None,
    ) -> QueryOnText:
        """Match a folded question, or its asking part, with a text.

        ``meaning`` has made the ``vectors``.
        """
        question_ids, starts, ends = encode_question(self.tokenizer, query)
        repeat_every = self.settings.reanchor_tokens
        if repeat_every:
            repeat_every = max(repeat_every, REANCHOR_QUESTIONS * len(question_ids))
        matched = QueryOnText(text, question_ids, repeat_every, query=query)
        if meaning is not None and vectors is not None:
            matched = replace(
                matched, cosines=meaning.cosines(query, vectors), meaning=meaning
            )
        if not self.lexical:
            return matched
        words_to_match = query
        if matched.encoder == MULTILINGUAL:
            words_to_match = _words_to_match(query, text)
        match = match_query(
            text.words,
            words_to_match,
            text.token_starts,
            text.token_ends,
            self.match_options,
            None if statistics is None else statistics(words_to_match),
        )
        if matched.encoder == MULTILINGUAL:
            assert vectors is not None
            return _read_by_meaning(matched, match, vectors)
        question_features = None
        if match.query_idf is not None:
            question_features = query_features(
                query, starts, ends, match.query_idf, match.language
            )
        estimates = None
        if self._scans(text) and matched.cosines is not None:
            features = sentence_features(
                matched.cosines, match.scores, text.marks, question_marks(query)
            )
            assert self.sentence_scan is not None
            estimates = self.sentence_scan.logits(features)
        return replace(
            matched,
            estimates=estimates,
            match_classes=match.token_classes if self.settings.match else None,
            prior=match.scores if self.settings.prior else None,
            match_features=match.token_features,
            question_features=question_features,
            offset=self.settings.text_weight * match.text_score,
        )


def _with_numbers_as_written(query: str, text: IndexedText) -> str:
    """A folded question with its numbers as a text writes them."""

    def sentences_with(word: str) -> Iterator[str]:
        for number in text.words.units_with(word):
            yield text.units[number].model_text

    written_with_comma = text.words.language in DECIMAL_COMMA
    language = question_language(query)
    if language == UNKNOWN:
        language = text.words.language
    return numbers_as_written(
        query,
        sentences_with,
        asked_with_comma=language in DECIMAL_COMMA,
        written_with_comma=written_with_comma,
    )


def _words_to_match(query: str, text: IndexedText) -> str:
    """A question, or only its names and numbers if the text has another language."""
    language = question_language(query)
    if language in (UNKNOWN, *text.languages):
        return query
    return names_and_numbers(query)


def _read_by_meaning(
    matched: QueryOnText, match: LexicalMatch, vectors: SentenceVectors
) -> QueryOnText:
    """A question whose logits are those of an encoder and of words alone.

    The model, which was trained on English, does not read.
    """
    assert matched.meaning is not None
    assert matched.cosines is not None
    shares = None
    if match.scores.shape[1] > WORD_SHARE:
        shares = match.scores[:, WORD_SHARE]
    cosines = matched.cosines
    languages = matched.text.unit_languages
    if reads_across(matched.query, languages):
        cosines = matched.meaning.cosines_across(matched.query, vectors, languages)
    estimates = matched.meaning.weights.estimates(
        cosines, shares, matched.text.relative_lengths
    )
    return replace(matched, estimates=estimates, offset=0.0, reads=False)


def location_in(document: str | StructuredText) -> Located | None:
    """Return a document that knows its pages and headings.

    None for any other.
    """
    return document if isinstance(document, Located) else None
