"""Train the rows of an ablation, each the first one with one thing changed, and compare them with it.

Rows are in ``benchmarks/ablation.toml``. Every row is trained by `spscanner train` and evaluated by
`spscanner eval`, in a folder of its own; finished rows are kept, and an interrupted run resumes.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.excerpts import write_excerpts

if TYPE_CHECKING:
    from spscanner_rag.lab.evaluation.records import Record
    from spscanner_rag.lab.evaluation.settings import Setting
    from spscanner_rag.lab.evidence.questions import Document

ROWS = Path(__file__).resolve().with_name("ablation.toml")
WORD_VECTORS = ROWS.parents[1] / "spscanner_rag" / "checkpoint" / "bundled" / "word_vectors.safetensors"
METRICS = ("recall@1", "recall@5", "recall@10", "recall@50", "ndcg@10")
QUESTIONS, RECORDS = "questions.jsonl", "records.jsonl"
BASELINE = "bm25"

Plan = Mapping[str, Any]


def add_commands(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
) -> list[argparse.ArgumentParser]:
    """Add `ablation`."""
    command = commands.add_parser("ablation", help="what each choice of a small scanner is worth")
    command.add_argument(
        "rows", nargs="*", metavar="ROW", help="names in the plan; 'all'; none: the table only"
    )
    command.add_argument(
        "--qa", type=Path, required=True, help="folder of SOURCE/train.jsonl.gz and dev.jsonl.gz"
    )
    command.add_argument(
        "--text", type=Path, help="folder of NAME.txt.xz, for the stages that read plain text"
    )
    command.add_argument("--results", type=Path, required=True, help="where everything is written")
    command.add_argument("--plan", type=Path, default=ROWS, help="default: benchmarks/ablation.toml")
    command.set_defaults(measure=measure_ablation)
    return [command]


def measure_ablation(arguments: argparse.Namespace) -> tuple[dict[str, object], bool]:
    """Train and evaluate the wanted rows, then report all rows that can be computed now."""
    plan = tomllib.loads(arguments.plan.read_text(encoding="utf-8"))
    wanted = list(plan["rows"]) if arguments.rows == ["all"] else arguments.rows
    if unknown := [name for name in wanted if name not in plan["rows"]]:
        raise SystemExit(f"unknown row {unknown[0]!r}; expected some of {', '.join(plan['rows'])}")
    out: Path = arguments.results
    out.mkdir(parents=True, exist_ok=True)
    _write_questions(plan, arguments.qa, out / QUESTIONS)
    _ask(BASELINE, out / BASELINE, out / QUESTIONS)
    for name in wanted:
        if "length_normalized" in plan["rows"][name]:
            _normalize_length(name, plan, arguments)
            continue
        _train(name, plan, arguments)
        _ask(f"scanner:{out / name}", out / name / "eval", out / QUESTIONS)
    return _table(plan, out), True


def _write_questions(plan: Plan, qa: Path, path: Path) -> None:
    from spscanner_rag.lab.evidence.questions import read_documents
    from spscanner_rag.lab.evidence.sampling import only_held_out

    if path.exists():
        return
    files = [_file(qa, name, "dev") for name in plan["validation"]]
    held_out = [_file(qa, name, "train") for name in plan["held_out"]]
    documents = [*read_documents(files), *only_held_out(read_documents(held_out), plan["held_out"])]
    write_excerpts(documents, plan["questions"], plan["characters"], path)


def _file(qa: Path, source: str, split: str) -> Path:
    return qa / source / f"{split}.jsonl.gz"


def _train(name: str, plan: Plan, arguments: argparse.Namespace) -> None:
    """All stages of a row, each from the one before; the last one's checkpoint is in RESULTS/name."""
    row, base = plan["rows"][name], None
    own = row.get("recipe", {})
    for stage in row.get("stages", []):
        recipe = plan["recipe"] | plan["stages"][stage] | own
        base = _train_stage(f"{name}/{stage}", recipe, plan, arguments, base, from_text=True)
    recipe = plan["recipe"] | {"held_out_sources": plan["held_out"]} | own
    _train_stage(name, recipe, plan, arguments, base)


def _train_stage(
    name: str,
    recipe: dict[str, Any],
    plan: Plan,
    arguments: argparse.Namespace,
    base: Path | None,
    from_text: bool = False,
) -> Path:
    folder: Path = arguments.results / name
    if (folder / "model.safetensors").is_file():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "recipe.toml").write_text(_toml(recipe), encoding="utf-8")
    command = ["train", str(folder / "recipe.toml"), "--out", str(folder), "--no-progress"]
    command += ["--teacher-cache", str(arguments.results / "teacher")]
    if from_text:
        files = [arguments.text / f"{text}.txt.xz" for text in plan["text"]]
    else:
        files = [_file(arguments.qa, source, "train") for source in plan["train"]]
    is_evidence = recipe.get("stage") != "language-model"
    option = "--text" if from_text and is_evidence else "--data"
    command += [word for file in files for word in (option, str(file))]
    if recipe.get("lexical_soft") or recipe.get("embedding_start"):
        command += ["--word-vectors", str(WORD_VECTORS)]
    if is_evidence:  # a language model has no use for questions
        command += ["--validation", str(arguments.results / QUESTIONS)]
    if base is not None:
        command += ["--base", str(base)]
    else:
        command += ["--config", str(_write_shape(name, plan, folder))]
        if not (folder / "tokenizer.json").exists():
            shutil.copy(_vocabulary(recipe["vocab_size"], plan, arguments), folder / "tokenizer.json")
    _spscanner(command)
    return folder


def _normalize_length(name: str, plan: Plan, arguments: argparse.Namespace) -> None:
    """Evaluate another row's scanner with length-normalized logits, fitted on excerpts of training documents."""
    from benchmarks.length_normalized import ask_length_normalized

    row, out = plan["rows"][name]["length_normalized"], arguments.results
    if (out / name / "eval" / "results.json").is_file():
        return
    fit_on = out / "length_questions.jsonl"
    if not fit_on.exists():
        write_excerpts(_training_documents(plan, arguments.qa), row["questions"], plan["characters"], fit_on)
    ask_length_normalized(out / row["scanner"], fit_on, out / QUESTIONS, out / name / "eval")


def _training_documents(plan: Plan, qa: Path) -> Iterator[Document]:
    from spscanner_rag.lab.evidence.questions import read_documents
    from spscanner_rag.lab.training.stages.evidence_stage import set_aside

    documents = read_documents([_file(qa, source, "train") for source in plan["train"]])
    return set_aside(documents, plan["held_out"], [])


def _vocabulary(size: int, plan: Plan, arguments: argparse.Namespace) -> Path:
    """The tokenizer of all rows with this vocabulary size, learnt from the training documents."""
    from spscanner_rag.checkpoint.whole_file import whole_file
    from spscanner_rag.lab.training.start import train_tokenizer

    path: Path = arguments.results / f"vocabulary-{size}.json"
    if not path.exists():
        texts = (document.text for document in _training_documents(plan, arguments.qa))
        with whole_file(path) as unfinished:
            train_tokenizer(texts, size).save(str(unfinished))
    return path


def _write_shape(name: str, plan: Plan, folder: Path) -> Path:
    path = folder / "shape.json"
    row = plan["rows"][name.partition("/")[0]]
    path.write_text(json.dumps(plan["config"] | row.get("config", {})), encoding="utf-8")
    return path


def _toml(recipe: Mapping[str, Any]) -> str:
    """A recipe as TOML; JSON writes its values alike, except for tables."""
    return "".join(f"{key} = {_toml_value(value)}\n" for key, value in recipe.items())


def _toml_value(value: object) -> str:
    if not isinstance(value, dict):
        return json.dumps(value)
    return "{ " + ", ".join(f"{name} = {json.dumps(factor)}" for name, factor in value.items()) + " }"


def _ask(retriever: str, folder: Path, questions: Path) -> None:
    if not (folder / "results.json").is_file():
        _spscanner(["eval", str(questions), "--retrievers", retriever, "--seed", "0", "--out", str(folder)])


def _spscanner(words: list[str]) -> None:
    subprocess.run([sys.executable, "-m", "spscanner_rag.apps.cli", *words], check=True, stdout=sys.stderr)


def _table(plan: Plan, out: Path) -> dict[str, object]:
    """Macro means in percent, and differences from the first row with their p values."""
    from spscanner_rag.lab.evaluation.report.rows import TESTED, paired_samples
    from spscanner_rag.lab.evaluation.statistics import estimate, paired_test

    first = next(iter(plan["rows"]))
    asked = {name: _records(folder) for name, folder in _asked(plan, out)}
    rows: dict[str, object] = {}
    for name, records in asked.items():
        setting = _setting(records)
        shown: dict[str, object] = {}
        for metric in METRICS:
            own, _ = paired_samples(records, setting, setting, metric)
            shown[metric] = round(100 * estimate(own).value, 1)
        if name != first and first in asked:
            for metric in TESTED:
                both = [*records, *asked[first]]
                test = paired_test(*paired_samples(both, setting, _setting(asked[first]), metric))
                shown[f"{metric} minus {first}"] = round(100 * test.difference.value, 1)
                shown[f"p {metric}"] = round(test.p_value, 4)
        rows[name] = shown | _cost(out / name)
    return rows


def _asked(plan: Plan, out: Path) -> Iterator[tuple[str, Path]]:
    yield BASELINE, out / BASELINE
    for name in plan["rows"]:
        if (out / name / "eval" / "results.json").is_file():
            yield name, out / name / "eval"


def _records(folder: Path) -> list[Record]:
    from spscanner_rag.files.json_files import complete_lines
    from spscanner_rag.lab.evaluation.records import Record

    return [Record.read(line) for _, line in complete_lines(folder / RECORDS)]


def _setting(records: Sequence[Record]) -> Setting:
    """The one setting of a row; its retriever is named by the folder of that time."""
    from spscanner_rag.lab.evaluation.settings import Setting

    return Setting(*records[0].setting_key)


def _cost(folder: Path) -> dict[str, object]:
    """Tokens and hours of the training steps of all stages."""
    seconds = tokens = 0.0
    for log in folder.rglob("log.jsonl"):
        for line in log.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            if entry.get("tokens_per_second"):  # a step, not a validation
                tokens += entry["tokens"]
                seconds += entry["tokens"] / entry["tokens_per_second"]
    return {"million tokens": tokens / 1e6, "hours": seconds / 3600} if tokens else {}
