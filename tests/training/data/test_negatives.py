import pytest

from spscanner_rag.evidence.questions import Document, Question
from spscanner_rag.training.data.document_store import DocumentStore
from spscanner_rag.training.data.negatives import Families, holds_answer, same_words


def test_pieces_of_a_text_and_documents_of_one_title_are_related() -> None:
    documents = [
        Document("novel-1.1", "novels", "", "", ()),
        Document("novel-1.2", "novels", "", "", ()),
        Document("novel-2.1", "novels", "", "", ()),
        Document("a", "novels", "The House", "", ()),
        Document("b", "novels", "the  house!", "", ()),
        Document("c", "novels", "The Horse", "", ()),
    ]
    families = Families(DocumentStore(documents))
    related = {(i, j) for i in range(6) for j in range(6) if families.related(i, j)}
    assert related == {(i, i) for i in range(6)} | {(0, 1), (1, 0), (3, 4), (4, 3)}


@pytest.mark.parametrize(
    ("answers", "text", "found"),
    [
        (("2008",), "It happened in 2008.", True),
        (("2008",), "It happened in 12008.", False),
        (("the sun",), "Was it THE SUN?", True),
        (("$5 (each)",), "They cost $5 (each).", True),
        (("", " "), "Anything.", False),
        ((), "Anything.", False),
    ],
)
def test_an_answer_is_found_in_whole_words(answers: tuple[str, ...], text: str, found: bool) -> None:
    assert holds_answer(Question("q", "?", (), answers=answers), text) == found


def test_the_same_words_are_the_same_whatever_their_case_and_punctuation() -> None:
    assert same_words("  Who  sang, then?") == same_words("who sang then")
    assert same_words("Who sang?") != same_words("Who sings?")
