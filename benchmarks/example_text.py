"""Text of any length from the novel in `examples/data`, and questions on it."""

from pathlib import Path

QUESTIONS = (
    "Who fell from the steps of the Cobb at Lyme?",
    "Where is the property that could make Mrs Smith rich again?",
    "Why was the engagement broken off eight years ago?",
    "Who becomes the tenant of Kellynch Hall?",
    "What book does Sir Walter Elliot read for his amusement?",
    "Whom does Charles Hayter want to marry?",
    "Where did Captain Harville take his lodgings?",
    "What does the letter to Anne say?",
    "Who is Mr Elliot, and what did he do to his friend?",
    "What happened to Dick Musgrove?",
    "Which poets does Captain Benwick admire?",
    "Why did the family have to leave their house?",
    "Who met Anne at the concert?",
    "How did Captain Wentworth make his fortune?",
    "Whom does Louisa marry in the end?",
    "Why does Mrs Clay stay in Bath?",
)
QUESTION = QUESTIONS[0]
CHARACTERS_PER_TOKEN = 3.72
"""For the bundled tokenizer, in this novel."""

_NOVEL = Path(__file__).resolve().parent.parent / "examples" / "data" / "persuasion.txt"


def example_text(characters: int) -> str:
    """The novel, repeated and cut to this number of characters."""
    novel = _NOVEL.read_text(encoding="utf-8")
    return (novel * (characters // len(novel) + 1))[:characters]


def text_of_tokens(tokens: int) -> str:
    """The novel, repeated and cut to about this number of tokens of the bundled tokenizer."""
    return example_text(round(tokens * CHARACTERS_PER_TOKEN))


def short_texts(number: int, tokens: int) -> list[str]:
    """Different pieces of the novel, each of about ``tokens`` tokens."""
    width = round(tokens * CHARACTERS_PER_TOKEN)
    text = example_text(number * width)
    return [text[start : start + width] for start in range(0, len(text), width)]
