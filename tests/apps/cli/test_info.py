"""`spscanner info`: what runs on this machine, and what a checkpoint holds."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer

from spscanner_rag import Scanner, __version__
from spscanner_rag.apps.cli.info import _checkpoint, _question
from spscanner_rag.checkpoint import ScannerSettings, save_checkpoint
from spscanner_rag.checkpoint.config import lexical_names
from spscanner_rag.mamba2.config import Mamba2Config
from spscanner_rag.mamba2.model import ScannerModel
from spscanner_rag.system.threads import usable_cores
from tests.command_line import Run
from tests.lexical.tables import table_of


def facts_of(run: Run, checkpoint: Path, *options: object) -> dict[str, str]:
    code, out, err = run(
        "info", checkpoint, "--device", "cpu", "--dtype", "float32", *options
    )
    assert (code, err) == (0, "")
    return {
        line[2:].split("  ")[0]: line[2:].split("  ")[-1].strip()
        for line in out.splitlines()
    }


def test_info_tells_what_the_checkpoint_is(run: Run, checkpoint: Path) -> None:
    short = facts_of(run, checkpoint)
    assert len(short) <= 32  # with the titles
    assert short["training"].endswith(" facts are recorded; --training shows them")
    facts = facts_of(run, checkpoint, "--threads", 1, "--training")
    assert set(facts) - set(short) >= {"sources", "validation.recall@10", "[red]"}
    assert facts["spscanner-rag"] == __version__
    assert facts["torch"] == torch.__version__
    assert facts["device"] == "cpu (as asked for)"
    assert facts["dtype"] == "float32 (as asked for)"
    assert facts["backend"] == "numba (numba is installed)"
    assert (
        facts["threads"] == f"1 (this process may use {usable_cores()} physical cores)"
    )
    assert facts["source"] == str(checkpoint)
    assert facts["layers"] == "1 of width 16, state 8"
    assert facts["windows"] == "none: one pass over any length"
    assert facts["re-anchoring"] == "question repeated every 64 tokens"
    assert facts["lexical channel"] == "BM25 prior"
    assert facts["word vectors"] == "none"
    assert facts["SHA-256"] == "checked: config.json, model.safetensors, tokenizer.json"
    assert facts["sources"] == "stories, contracts"
    assert facts["validation.recall@10"] == "0.25"
    assert facts["[red]"] == "\\x1b[31m"
    total = sum(
        p.numel()
        for p in Scanner.from_pretrained(checkpoint).checkpoint.model.parameters()
    )
    assert (
        facts["parameters"]
        == f"{total:,} ({total - 384 * 16:,} without the embedding of 384 tokens)"
    )


def test_info_tells_the_source_of_word_vectors(
    run: Run, tmp_path: Path, tiny_tokenizer: Tokenizer
) -> None:
    parts = {
        "match_embedding": True,
        "lexical_prior": True,
        "surroundings": True,
        "soft": True,
    }
    model = ScannerModel(
        Mamba2Config(d_model=16, n_layer=1, vocab_size=384, d_state=8, headdim=8),
        **parts,
    )
    table = table_of(
        ["ship", "boat"], np.eye(2, 3, dtype=np.float32), "a\x1b[31m model (MIT)"
    )
    settings = ScannerSettings(match=True, prior=True, surroundings=True, soft=True)
    save_checkpoint(
        tmp_path / "soft", model, settings, tiny_tokenizer, word_vectors=table
    )
    facts = facts_of(run, tmp_path / "soft")
    assert (
        facts["word vectors"]
        == "2 words of 3 dimensions, made with a\\x1b[31m model (MIT)"
    )
    assert facts["lexical channel"].endswith(
        "BM25 of the surroundings, meaning of words"
    )


def test_parts_of_the_lexical_channel_have_names() -> None:
    settings = ScannerSettings(match=True, prior=True, least_units=300)
    assert lexical_names(settings) == [
        "match embedding",
        "BM25 prior",
        "short documents scored as 300 units",
    ]
    compared = replace(settings, surroundings=True, text_weight=0.5)
    assert lexical_names(compared)[-1] == "whole documents compared (weight 0.5)"
    assert lexical_names(ScannerSettings(least_units=300)) == []


SITUATION = (
    "I moved out in March and left the flat clean and empty, as my lease says. There"
    " was a stain on the carpet, which had been there before. My landlord kept the"
    " deposit. May he keep all of the money?"
)


def test_what_is_read_of_a_question_is_told(run: Run, checkpoint: Path) -> None:
    facts = facts_of(run, checkpoint, "--question", "Who signed it?")
    assert re.fullmatch(r"all, \d+ tokens", facts["read"])
    assert "cross-reader" not in facts


def test_the_part_that_asks_is_told(bundled: Scanner) -> None:
    facts = dict(_question(bundled, SITUATION))
    assert facts["reader"].endswith("tokens: May he keep all of the money?")
    assert facts["encoder and words"].endswith("tokens, and the part below")
    assert facts["cross-reader"].startswith("the last ")
    assert "reader" not in dict(_question(bundled, "May he keep the money?"))


def test_facts_of_other_checkpoints_are_told(
    run: Run, windowed_checkpoint: Path, bundled: Scanner
) -> None:
    facts = facts_of(run, windowed_checkpoint)
    assert facts["windows"] == "100 tokens, half overlapping"
    assert facts["sentence scan"] == "none: every text is read as a whole"
    assert facts["encoder"] == "none"
    of_bundled = dict(_checkpoint(bundled))
    assert "likeliest" in of_bundled["sentence scan"]
    assert of_bundled["encoder"].startswith("BERT, ")
