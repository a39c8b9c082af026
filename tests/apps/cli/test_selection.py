"""The options of a selection on the command line."""

import json
from pathlib import Path

import pytest

from spscanner_rag.apps.cli.declaring import option
from spscanner_rag.apps.cli.selection import (
    SelectionOptions,
    checked_selection,
    selection_options,
)
from tests.command_line import Run


def test_a_group_has_the_options_but_those_left_out() -> None:
    @selection_options(
        redeclared={"top_k": option("5", "Some.")}, left_out={"merge": "no passages"}
    )
    class Some(SelectionOptions):
        """Some options."""

    selection = Some().selection(context=2)
    assert (selection.top_k, selection.context, selection.merge) == (5, 2, False)
    assert Some.left_out == {"merge": "no passages"}
    assert not hasattr(Some(), "merge")


def test_a_group_names_only_options_that_exist() -> None:
    with pytest.raises(ValueError, match="top_n: no option of a selection"):
        selection_options(left_out={"top_n": "why"})


@pytest.mark.parametrize(
    ("top_k", "expected"), [("all", None), ("3", 3), ("0.5", 0.5), ("elbow", "elbow")]
)
def test_the_most_sentences_are_a_number_or_a_word(
    top_k: str, expected: object
) -> None:
    assert checked_selection(top_k).top_k == expected


def passages(scan: Run, document: Path, *options: object) -> list[dict[str, object]]:
    result = scan(document, "--format", "json", *options)
    assert result.code == 0, result.err
    return list(json.loads(result.out)["documents"][0]["passages"])


def test_merged_passages_are_runs_of_sentences(scan: Run, document: Path) -> None:
    apart = passages(scan, document, "-k", "all")
    (merged,) = passages(scan, document, "-k", "all", "--merge")
    assert (merged["start"], merged["end"]) == (
        min(int(str(passage["start"])) for passage in apart),
        max(int(str(passage["end"])) for passage in apart),
    )
    assert merged["logit"] == max(float(str(p["logit"])) for p in apart)
    assert (merged["rank"], merged["neighbour"]) == (1, False)
    shown = scan(document, "-k", "all", "--merge").out
    assert "  1  " in shown
    assert "  2  " not in shown
    page = scan(document, "-k", "all", "--merge", "--format", "html").out
    assert page.count("<mark ") == 1


def test_some_sentences_are_always_kept(scan: Run, document: Path) -> None:
    last = document.read_text(encoding="utf-8").split()[-1]
    found = passages(
        scan, document, "-k", 1, "--always-keep", "Nowhere", "--always-keep", f"{last}$"
    )
    assert any(str(passage["text"]).endswith(last) for passage in found)
    assert "--always-keep: got" in scan(document, "--always-keep", "(").err


def test_a_required_answer_needs_a_scanner_that_estimates_it(
    scan: Run,
    document: Path,
) -> None:
    error = scan(document, "--require-answer", 0.5).err
    assert "--require-answer: this checkpoint does not estimate" in error
    assert "--require-answer: got 2.0" in scan(document, "--require-answer", 2).err
