from spscanner_rag.baselines.propositions import passages_of, terms, tie


def test_passages_are_whole_sentences() -> None:
    text = "\n\n".join(f"The harbour number {number} was widened in a year." for number in range(40))
    assert [len(passage) for passage in passages_of(text)] == [11, 11, 11, 7]  # 9 words each
    huge = "word " * 500 + "end."
    assert [unit.start for unit in next(passages_of("One. " + huge))] == [0]


def test_the_rule_of_ties() -> None:
    def tied(statement: str, *sentences: str) -> int | None:
        """The place of the sentence, each taken to start at its number."""
        span = tie(statement, [(terms(text), place, -1) for place, text in enumerate(sentences)])
        return None if span is None else span[0]

    assert tied("the ship LEFT", "The harbour.", "The ship left.", "The ship.") == 1
    assert tied("Anna Brook signed it", "Anna Brook came.", "She signed it.") == 1, "the last of two"
    assert tied("Anna Brook came", "Anna Brook came.", "She signed it.") == 0
    assert tied("red ship", "A red ship.", "A ship, red.") == 0, "pairs of words count"
    assert tied("the the the", "the", "the cat and the dog") == 1, "a word counts once"
    assert tied("nothing shared", "The ship left.") is None
    assert tied("東京に住む", "東京の人", "大阪に") == 0
    assert tied("nothing") is None
