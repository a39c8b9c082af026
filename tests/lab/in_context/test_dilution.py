"""Attention dilution, and its table over corpora of several sizes.

The reference are the attention weights of transformers.
"""

import copy
import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from spscanner_lab.in_context.dilution import dilution
from spscanner_lab.in_context.model import BlockSearchModel
from tests.lab.evaluation.test_judged import folder_of
from tests.lab.in_context.conftest import TEXTS, with_settings
from tests.lab.in_context.test_model import CODES, QUERY, with_explicit_mask

SCRIPT = Path(__file__).parents[3] / "examples" / "training" / "attention_dilution.py"
Command = Callable[..., dict[str, Any]]


@pytest.mark.parametrize("gold", [{0}, {4}, {1, 3}])
def test_it_is_what_transformers_attends_to(
    model: BlockSearchModel, gold: set[int]
) -> None:
    plain = with_settings(copy.deepcopy(model).double(), attention="plain")
    found = dilution(plain, plain.read_documents(TEXTS, CODES), QUERY, gold)
    layers, seen = plain.decoder.model.layers, list[Any]()
    lengths = [
        len(plain.layout.document(text, code)[0])
        for text, code in zip(TEXTS, CODES, strict=True)
    ]
    document_of = torch.repeat_interleave(torch.tensor(lengths))
    for layer in layers:
        for module in (layer.self_attn.v_proj, layer.self_attn, layer):
            module.register_forward_hook(lambda *called: seen.append(called[-1]))
    plain.decoder.set_attn_implementation("eager")
    with_explicit_mask(plain, TEXTS, CODES)
    for number, layer in enumerate(layers):
        values, (output, weights), hidden = seen[3 * number : 3 * number + 3]
        # (heads, document tokens), of the query's last token
        of_all = weights[0, :, -1]
        own = of_all[:, : len(document_of)]
        # (tokens, heads, 8)
        per_head = values[0, : len(document_of)].view(-1, 2, 8).repeat_interleave(2, 1)
        is_gold = torch.isin(document_of, torch.tensor(list(gold)))
        of_gold = torch.einsum("ht,thw->hw", own * is_gold, per_head).flatten()
        share = (of_gold @ layer.self_attn.o_proj.weight.T.detach()).norm() / output[
            0, -1
        ].norm()
        assert found.gold_share[number] == pytest.approx(share.item(), abs=1e-4)
        length = output[0, -1].norm().item()
        assert found.output_norm[number] == pytest.approx(length, abs=1e-4)
        best = torch.stack(
            [own[:, document_of == place].amax(1) for place in range(5)], 1
        ).log()
        assert found.any_head[number] == bool(set(best.argmax(1).tolist()) & gold)
        assert found.all_heads[number] == (int(best.sum(0).argmax()) in gold)
        signal = found.signals[number]
        on_gold = own[:, is_gold]
        mass = on_gold.sum(1)
        assert signal.mass.tolist() == pytest.approx(mass.tolist(), abs=1e-5)
        gap = ((1 - mass) / mass).log()
        assert signal.gap.tolist() == pytest.approx(gap.tolist(), abs=1e-3)
        digits = list(plain.layout.digits)
        head = plain.decoder.lm_head.weight[digits]
        likeliest = int((plain.decoder.model.norm(hidden[0, -1]) @ head.T).argmax())
        first_digits = {CODES[place] // 1000 for place in gold}
        assert found.first_digit[number] == (likeliest in first_digits)


@pytest.fixture
def command(
    model: BlockSearchModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Command:
    """Runs the script on a tiny BEIR folder and returns its global names."""
    model.save(tmp_path / "model")
    documents = [
        {"_id": f"d{number}", "text": f"{TEXTS[number % 5]} Part {number}."}
        for number in range(30)
    ]
    queries = [{"_id": f"q{number}", "text": TEXTS[number]} for number in range(4)]
    judged = [(f"q{number}", f"d{number}", 1) for number in range(4)]
    folder = folder_of(
        tmp_path / "beir", corpus=documents, queries=queries, qrels=judged
    )
    script = runpy.run_path(str(SCRIPT))
    given = f"--model {tmp_path / 'model'} --corpus {folder} --queries 3 --negatives 2"

    def run(*options: str) -> dict[str, Any]:
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), *given.split(), *options])
        script["main"]()
        return script

    return run


def test_the_table_over_corpora_of_a_beir_folder_and_its_picture(
    command: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "dilution.svg"
    script = command("--sizes", "3", "6", "500", "--layer", "0", "--plot", str(picture))
    header, _, *rows = capsys.readouterr().out.splitlines()
    names = "recall@1 | first digit | routing@B | R_any | R_sum | GoldShare"
    signals = "gold score | noise gap | gold mass"
    assert header == rf"| documents, layer 0 | {names} | \|a\| | {signals} |"
    numbers = [[float(cell) for cell in re.findall(r"-?[\d.]+", row)] for row in rows]
    assert [row[0] for row in numbers] == [3, 6, 9]
    assert all(0 <= cell <= 1 for row in numbers for cell in row[1:7])
    assert all(row[3] == 1 for row in numbers), "all documents are read"
    assert all(row[7] > 0 for row in numbers)
    masses = [row[10] for row in numbers]
    assert sorted(masses, reverse=True) == masses, "other documents take mass"
    judged = script["read_beir"](tmp_path / "beir")
    found, gold = script["hard_corpus"](judged, ["q0", "q1"], 2)
    names = [judged.documents[number].doc_id for number in found]
    assert names[:2] == ["d0", "d1"]
    assert sorted(int(name[1:]) % 5 for name in names) == [0, 0, 0, 1, 1, 1]
    assert len(set(names)) == 6
    assert {query: len(own) for query, own in gold.items()} == {"q0": 1, "q1": 1}
    lines = re.findall(
        r'<g id="(recall@1|first digit|routing@B|R_any|R_sum|GoldShare)">\s*'
        r'<path d="([^"]+)',
        picture.read_text(),
    )
    assert [name for name, _ in lines] == list(script["SHARES"])
    heights = [
        [float(y) for y in re.findall(r"[ML] [\d.]+ ([\d.]+)", path)]
        for _, path in lines
    ]
    values = [[row[column] for row in numbers] for column in range(1, 7)]
    # in SVG, y grows downwards
    assert np.corrcoef(np.ravel(heights), np.ravel(values))[0, 1] < -0.999


def test_a_corpus_filled_at_random_has_the_gold_documents_and_any_others(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    """Section 3.3 fills at random from all documents; we may take the nearest."""
    fill = runpy.run_path(str(SCRIPT))["filled_at_random"]
    numbers = list(range(100))
    filled = fill(numbers, 10, seed=1)
    assert filled[:10] == numbers[:10]
    assert sorted(filled) == numbers
    assert len(set(filled[10:30]) & set(range(10, 30))) < 12
    assert fill(numbers, 10, seed=1) == filled != fill(numbers, 10, seed=2)
    tables = []
    for options in (["--fill", "random"], []):
        command("--sizes", "5", "--layer", "0", "--best-documents", "1", *options)
        tables.append(capsys.readouterr().out)
    assert tables[0] != tables[1]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["--sizes", "2"], "expected at least 3"),
        (["--layer", "4"], "expected 0 to 3"),
        (
            ["--plot", "dilution.jpeg"],
            "expected a name that ends with .png, .svg, .pdf",
        ),
        (["--plot", "dilution.svg"], "pip install matplotlib"),
    ],
)
def test_what_cannot_be_measured_or_drawn_is_refused_first(
    wrong: list[str],
    message: str,
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SystemExit):
        command(*wrong)
    written = capsys.readouterr()
    assert message in written.err
    assert not written.out
