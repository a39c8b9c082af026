from hypothesis import given
from hypothesis import strategies as st

from spscanner_rag.training.vocabulary import train_tokenizer

TOKENIZER = train_tokenizer(["the cat sat on the mat", "the dog sat"], 270)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_comes_back(text: str) -> None:
    assert TOKENIZER.decode(TOKENIZER.encode(text).ids, skip_special_tokens=False) == text


def test_merges_are_learnt_up_to_the_size() -> None:
    assert TOKENIZER.get_vocab_size() == 270
    assert len(TOKENIZER.encode(" the").ids) == 1
