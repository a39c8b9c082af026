"""The lexical channel: token classes by hand, and the prior against a slow BM25."""

import itertools
import re

import numpy as np
import Stemmer
from hypothesis import given, settings
from hypothesis import strategies as st

from spscanner_rag.lexical.words import query_stems
from tests.lexical.matching import match


@settings(max_examples=100)
@given(
    st.lists(st.text(st.sampled_from("ab _-. \nйаλ\ud800"), max_size=12), max_size=6),
    st.text(st.sampled_from("ab _-йаλ\ud800 "), max_size=8),
    st.data(),
)
def test_class_of_the_word_of_the_last_character(
    units: list[str], query: str, data: st.DataObject
) -> None:
    joined = "".join(units)
    cuts = sorted(
        data.draw(st.sets(st.integers(0, len(joined)), max_size=8)) | {0, len(joined)}
    )
    tokens = list(itertools.pairwise(cuts))
    wanted = set(query_stems(query))
    stem = Stemmer.Stemmer("english").stemWord
    words = []  # words do not extend beyond the end of a unit
    offset = 0
    for unit in units:
        words += [
            (w.start() + offset, w.end() + offset, stem(w.group().lower()))
            for w in re.finditer(r"\w+", unit)
        ]
        offset += len(unit)
    expected = []
    for start, end in tokens:
        holding = [s for a, b, s in words if start < end and a < end <= b]
        expected.append(bool(holding) and holding[0] in wanted)
    found = match(units, query, tokens)
    assert (found.token_classes[:] > 0).tolist() == expected
    assert found.token_classes[:].dtype == np.uint8
