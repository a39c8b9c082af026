"""Postings, and the counts of a query's stems in them."""

from spscanner_rag.lexical.postings import QueryCounts, count_stems
from spscanner_rag.lexical.words import index_words, stem_columns


def count(units: list[str], stems: list[str]) -> QueryCounts:
    words = index_words(units)
    return count_stems(
        [words.postings], stem_columns(words.of_stem, stems, len(words.vocabulary)), len(stems)
    )


def test_more_repeats_than_two_bytes_hold() -> None:
    assert count(["ship " * 70_000], ["ship"]).times.tolist() == [65_535]
