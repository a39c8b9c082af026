import numpy as np

from spscanner_rag import Scanner
from spscanner_rag.lab.evaluation.ablation import ALONE, CHUNKS, WINDOWS, Chunked, ablated

TEXT = "The otter swims. A heron flies. Rain fell all day. Otters and herons rest."
LONG = "\n\n".join(
    f"On day {number} an otter crossed the road. Rain fell until it was dark; a heron flew over the well."
    for number in range(60)
)


def test_a_sentence_alone_is_a_text_of_its_own(tiny_scanner: Scanner) -> None:
    alone = Chunked(tiny_scanner)
    units = tiny_scanner.segment(TEXT)
    got = alone.score_units("Which otter?", TEXT, units)
    expected = [tiny_scanner.scan("Which otter?", TEXT[unit.start : unit.end]).logits[0] for unit in units]
    np.testing.assert_allclose(got, expected, atol=1e-4)
    whole = tiny_scanner.scan("Which otter?", TEXT).logits
    assert np.abs(got[1:] - whole[1:]).max() > 1e-3  # what stands before a sentence counts otherwise
    assert alone.score_units("Which otter?", " ", []).shape == (0,)


def test_chunks_are_scanned_alone() -> None:
    """With the bundled checkpoint, whose lexical channel depends on all sentences of a text."""
    scanner = Scanner.from_pretrained(dtype="float32")
    chunked = Chunked(scanner, 200)
    units = scanner.segment(LONG)
    chunks = [""]
    begin = tokens = 0
    for unit in units:
        own = scanner.count_tokens(unit.model_text)
        if tokens + own > 200:
            chunks.append("")
            begin, tokens = unit.start, 0
        chunks[-1] = LONG[begin : unit.end]
        tokens += own
    assert len(chunks) > 5
    assert max(map(scanner.count_tokens, chunks)) <= 200
    expected = np.concatenate([scanner.scan("Where did the otter cross?", chunk).logits for chunk in chunks])
    got = chunked.score_units("Where did the otter cross?", LONG, units)
    np.testing.assert_allclose(got, expected, atol=1e-4)
    whole = scanner.scan("Where did the otter cross?", LONG).logits
    assert np.abs(got - whole).max() > 1e-2


def test_names_that_files_of_runs_have() -> None:
    assert [setting.name for setting in (ALONE, CHUNKS, WINDOWS)] == [
        "scanner, sentence alone",
        "scanner, chunk of 1,024 tokens alone",
        "scanner, 1,024 tokens",
    ]
    assert list(ablated("cpu", "float32")) == [ALONE, CHUNKS, WINDOWS]
