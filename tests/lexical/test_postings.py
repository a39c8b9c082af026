"""Postings, and the counts of a query's stems in them."""

from spscanner_rag.lexical.postings import QueryCounts, count_stems, merged
from spscanner_rag.lexical.words import index_words, stem_columns


def count(units: list[str], stems: list[str]) -> QueryCounts:
    words = index_words(units)
    return count_stems(
        [words.postings], stem_columns(words.of_stem, stems, len(words.vocabulary)), len(stems)
    )


def test_counts_by_unit_then_stem() -> None:
    counts = count(["Ships sail, ", "", "the ship sails a ship."], ["sail", "storm", "ship"])
    pairs = zip(counts.units.tolist(), counts.stems.tolist(), counts.times.tolist(), strict=True)
    assert list(pairs) == [(0, 0, 1), (0, 2, 1), (2, 0, 1), (2, 2, 2)]
    assert (counts.n_stems, counts.n_units, counts.text_starts.tolist()) == (3, 3, [0])


def test_nothing_to_count() -> None:
    assert count([], ["ship"]).times.tolist() == []
    assert count(["the ship"], []).times.tolist() == []
    assert count_stems([], stem_columns({}, ["ship"], 0), 1).n_units == 0


def test_more_repeats_than_two_bytes_hold() -> None:
    assert count(["ship " * 70_000], ["ship"]).times.tolist() == [65_535]


def test_nothing_merged() -> None:
    assert merged([]).text_stops.tolist() == [0]
    assert merged([]).n_units == 0
