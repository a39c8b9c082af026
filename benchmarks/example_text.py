"""Text of any length from the novel in `examples/data`."""

from pathlib import Path

QUESTION = "Who fell from the steps of the Cobb at Lyme?"
_NOVEL = Path(__file__).resolve().parent.parent / "examples" / "data" / "persuasion.txt"


def example_text(characters: int) -> str:
    """The novel, over and over, cut to so many characters."""
    novel = _NOVEL.read_text(encoding="utf-8")
    return (novel * (characters // len(novel) + 1))[:characters]
