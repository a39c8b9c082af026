import pytest

from spscanner_rag.lab.evidence.questions import Document, Question
from spscanner_rag.lab.training.data.documents import DocumentStore
from spscanner_rag.lab.training.data.questions import AnswerWords, Families, same_words


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
    words = AnswerWords(DocumentStore([]))
    assert words.are_in(text, "news", Question("q", "?", (), answers=answers)) == found


def test_an_answer_to_questions_about_many_documents_is_a_label() -> None:
    def asked(number: int, source: str) -> Document:
        answers = ("Increased.", f"by {number} %") if number < 6 else (f"by {number} %",)
        return Document(f"{source}-{number}", source, "", "", (Question("q", "?", (), answers=answers),))

    words = AnswerWords(DocumentStore([asked(n, "trials") for n in range(100)] + [asked(0, "news")]))
    question = Question("q", "?", (), answers=("increased", "by 3 %"))
    assert not words.are_in("It increased.", "trials", question)
    assert words.are_in("It increased.", "news", question)
    assert words.are_in("It increased by 3 %, they say.", "trials", question)


def test_the_same_words_are_the_same_whatever_their_case_and_punctuation() -> None:
    assert same_words("  Who  sang, then?") == same_words("who sang then")
    assert same_words("Who sang?") != same_words("Who sings?")
