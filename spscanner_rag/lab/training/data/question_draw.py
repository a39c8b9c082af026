"""The random choice of a question and a document for an example."""

import random
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from spscanner_rag.lab.evidence.questions import Question
from spscanner_rag.lab.training.data.document_store import DocumentStore
from spscanner_rag.lab.training.data.negatives import AnswerWords, Families, same_words
from spscanner_rag.lab.training.data.source_collections import SourceCollections
from spscanner_rag.lab.training.recipe import Recipe

MOST_REPEATED = 0.1
"""Groups are not drawn from a source, unless the recipe names it, where more than this share of the questions have
the same words as another document's: its questions say too little about the document that they mean."""

_FOREIGN_DRAWS = 20

Place = tuple[int, int]  # a document's number, a question's number in it


@dataclass(frozen=True, slots=True)
class Drawn:
    """A question and the document that it is asked of."""

    document: int  # its number
    question: Question
    place: int | None  # its number in the document; None for another document's question
    answered: bool  # whether the document contains the question's evidence
    to_change: bool = False  # whether a wrong name or number is to make it one without an answer


class QuestionDraw:
    """Draws a source by its weight, then one of its questions with unambiguous evidence, all equally likely.

    The recipe's ``pseudo_weight`` multiplies the weights of ``pseudo_sources``. ``collections``, of all sources,
    are needed where the recipe has an ``unanswerable_near_share``.

    Raises ``ValueError`` if no question has evidence, or if the recipe wants unanswerable ones or groups and there
    are none.
    """

    def __init__(
        self,
        documents: DocumentStore,
        recipe: Recipe,
        pseudo_sources: Collection[str] = (),
        collections: SourceCollections | None = None,
    ) -> None:
        self._documents, self._collections = documents, collections
        self._families, self._answers = Families(documents), AnswerWords(documents)
        self._near_share = recipe.unanswerable_near_share
        self._answered: dict[str, list[Place]] = {}
        self._unanswered: dict[str, list[Place]] = {}
        for number in range(len(documents)):
            document = documents.without_text(number)
            for place, question in enumerate(document.questions):
                if not question.answerable:
                    self._unanswered.setdefault(document.source, []).append((number, place))
                elif question.evidence and not question.ambiguous:
                    self._answered.setdefault(document.source, []).append((number, place))
        self.questions_by_source = {source: len(found) for source, found in sorted(self._answered.items())}
        self.source_weights = _source_weights(self.questions_by_source, recipe, pseudo_sources)
        self._sources = [source for source, weight in self.source_weights.items() if weight]
        if not self._sources:
            raise ValueError("got no question with evidence to train on; see the data format in the README")
        self._unanswered_sources = [
            source
            for source in self._sources
            if source in self._unanswered or len({number for number, _ in self._answered[source]}) > 1
        ]
        if recipe.unanswerable_share and not self._unanswered_sources:
            raise ValueError(
                f"unanswerable_share is {recipe.unanswerable_share}, but no source has a question with "
                '"answerable": false or two documents to exchange questions between; expected such a source, or 0'
            )
        self._comparable = self._unique_questions(recipe) if recipe.group_share else {}
        if recipe.group_share and not self._comparable:
            raise ValueError(
                f"group_share is {recipe.group_share}, but no source has two documents and questions that rarely "
                "repeat; expected such a source, or 0"
            )

    def answered(self, draw: random.Random) -> Drawn:
        """A question with evidence, on its document."""
        number, place = draw.choice(self._answered[self._source(self._sources, draw)])
        return Drawn(number, self._question(number, place), place, True)

    def comparable(self, draw: random.Random) -> Drawn:
        """A question with evidence, on its document, that no other document of the source has in its words."""
        source = self._source(list(self._comparable), draw)
        number, place = draw.choice(self._comparable[source])
        return Drawn(number, self._question(number, place), place, True)

    def to_change(self, draw: random.Random) -> Drawn | None:
        """A question with evidence, on its document, that a wrong name may leave without an answer; or None.

        A source that marks questions as not answerable gives those instead; and what is no question, such as a
        claim, can have evidence that says the opposite.
        """
        drawn = self.answered(draw)
        source = self._documents.without_text(drawn.document).source
        if source in self._unanswered or not drawn.question.text.rstrip().endswith("?"):
            return None
        return Drawn(drawn.document, drawn.question, None, False, to_change=True)

    def unanswered(self, draw: random.Random) -> Drawn | None:
        """A question that a document does not answer; None if this draw found none.

        A source without such questions gives a question of another document of the source, unless this document
        has a question in the same words, as contracts do. In ``unanswerable_near_share`` of these cases the
        document is the nearest to the question by BM25.
        """
        source = self._source(self._unanswered_sources, draw)
        if source in self._unanswered:
            number, place = draw.choice(self._unanswered[source])
            return Drawn(number, self._question(number, place), place, False)
        if self._near_share and draw.random() < self._near_share:
            return self._on_nearest(*draw.choice(self._answered[source]), draw)
        number, _ = draw.choice(self._answered[source])
        own = {question.text for question in self._documents.without_text(number).questions}
        for _ in range(_FOREIGN_DRAWS):
            other, place = draw.choice(self._answered[source])
            question = self._question(other, place)
            if other != number and question.text not in own:
                return Drawn(number, question, None, False)
        return None

    def _on_nearest(self, number: int, place: int, draw: random.Random) -> Drawn | None:
        """A question on the document nearest to it that seems not to answer it."""
        assert self._collections is not None
        question = self._question(number, place)
        wording = same_words(question.text)
        for other in self._collections.ask(number, question.text).nearest()[:_FOREIGN_DRAWS]:
            document = self._documents.document(other)
            known = self._families.related(number, other)
            known = known or self._answers.are_in(document.text, document.source, question)
            if not known and all(same_words(own.text) != wording for own in document.questions):
                return Drawn(other, question, None, False)
        return None

    def _unique_questions(self, recipe: Recipe) -> dict[str, list[Place]]:
        """The answered questions that one document alone has, of each source to draw groups from."""
        unknown = sorted(set(recipe.group_sources) - set(self.questions_by_source))
        if unknown:
            raise ValueError(
                f"group_sources names {unknown[0]!r}; the data has {', '.join(self.questions_by_source)}"
            )
        bare = [self._documents.without_text(number) for number in range(len(self._documents))]
        sizes = Counter(document.source for document in bare)
        holders = Counter(
            (document.source, wording)
            for document in bare
            for wording in {same_words(question.text) for question in document.questions}
        )
        found = {}
        for source in self._sources:
            places = self._answered[source]
            unique = [p for p in places if holders[source, same_words(self._question(*p).text)] == 1]
            rare = len(unique) >= (1 - MOST_REPEATED) * len(places)
            wanted = source in recipe.group_sources if recipe.group_sources else rare
            if wanted and unique and sizes[source] > 1:
                found[source] = unique
        return found

    def _question(self, number: int, place: int) -> Question:
        return self._documents.without_text(number).questions[place]

    def _source(self, sources: list[str], draw: random.Random) -> str:
        return draw.choices(sources, [self.source_weights[source] for source in sources])[0]


def _source_weights(
    questions: Mapping[str, int], recipe: Recipe, pseudo_sources: Collection[str]
) -> dict[str, float]:
    factors = recipe.source_weights or {}
    unknown = sorted(set(factors) - set(questions))
    if unknown:
        raise ValueError(f"source_weights names {unknown[0]!r}; the data has {', '.join(sorted(questions))}")
    return {
        source: factors.get(source, 1.0)
        * (recipe.pseudo_weight if source in pseudo_sources else 1.0)
        * min(1.0, n / recipe.source_cap) ** recipe.source_smoothing
        for source, n in questions.items()
    }
