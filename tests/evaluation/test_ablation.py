import numpy as np

from spscanner_rag import Scanner
from spscanner_rag.evaluation.ablation import SentenceAlone

TEXT = "The otter swims. A heron flies. Rain fell all day. Otters and herons rest."


def test_a_sentence_alone_is_a_text_of_its_own(tiny_scanner: Scanner) -> None:
    alone = SentenceAlone(tiny_scanner)
    units = alone.segment(TEXT)
    got = alone.score_units("Which otter?", TEXT, units)
    expected = [tiny_scanner.scan("Which otter?", TEXT[unit.start : unit.end]).logits[0] for unit in units]
    np.testing.assert_allclose(got, expected, atol=1e-4)
    whole = tiny_scanner.scan("Which otter?", TEXT).logits
    assert np.abs(got[1:] - whole[1:]).max() > 1e-3  # what stands before a sentence counts otherwise
    assert alone.score_units("Which otter?", " ", []).shape == (0,)
