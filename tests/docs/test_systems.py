"""Every method of the survey's taxonomy (figure 2) has a row in docs/systems.md."""

import re

import pytest

from tests.docs.blocks import REPOSITORY

TEXT = (REPOSITORY / "docs" / "systems.md").read_text(encoding="utf-8")
HEADING = "### The methods of the survey"

METHODS = """
    TF-IDF; BM25; heuristic chunking; DSSM; DRMM; MatchPyramid; PACRR; DeepRank;
    DPR; ANCE; Longformer; BigBird; Reformer; FlashAttention; LongNet; LongEmbed;
    M3-Embedding; QDS-Transformer; Socialformer; RankGPT; RepLLaMA; RankLLaMA; LongLoRA;
    LongLLMLingua; DuoAttention; MaxP; SumP; PARADE; DRSCM; LTR-BERT; MORES+; IDCM;
    KeyB; KeyB2; BReps; DCS; ICLI; Match-Ignition; Longtriever; MC-indexing; HELD;
    RAPTOR; RPRS; Lawformer; LegalBERT; LawGPT; ChatLaw; DISC-LawLLM; SciBERT; SPECTER;
    SciNCL; PRISM; CORANK; PaperQA; SemRank; DocReLM; LLM-KnowSimFuser; PaSa; SPAR;
    PubMedBERT; Clinical-Longformer; Clinical-BigBird; BioClinical ModernBERT; mBERT;
    LaBSE; XLM-R; McCrolin; mGTE; CROSS
"""
"""The methods of figure 2, by era, paradigm and application, in its order."""

NAMES = [name.strip() for name in " ".join(METHODS.split()).split(";")]


def rows() -> list[list[str]]:
    """The rows of the survey's table: the methods, and where they are."""
    table = TEXT.partition(HEADING)[2].partition("\n## ")[0]
    cells = []
    for line in table.splitlines():
        if line.startswith("| ") and not line.startswith("| ---"):
            cells.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return cells[1:]


@pytest.mark.parametrize("name", NAMES)
def test_a_method_has_one_row(name: str) -> None:
    word = rf"(?<![\w-]){re.escape(name)}(?![\w-])"
    named = [methods for methods, _ in rows() if re.search(word, methods)]
    assert len(named) == 1, named


def test_a_row_says_where_or_why_not() -> None:
    for methods, here in rows():
        starts = ("left out: ", "in part: ", "any language model", "PyTorch's own")
        assert here.startswith("`") or here.startswith(starts), methods
