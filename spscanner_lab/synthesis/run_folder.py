"""The folder of a run that asks language models: its settings, replies and budget."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from spscanner_lab.llm.asking import Asker
from spscanner_lab.llm.budget import Budget
from spscanner_lab.llm.reply_file import ReplyFile
from spscanner_lab.training import Notify
from spscanner_rag.baselines.bundled_token_counter import bundled_token_counter
from spscanner_rag.system.outputs import check_results_folder, files_of_run
from spscanner_rag.system.run_inputs import earlier_run, refuse_other_run
from spscanner_rag.system.whole_files import write_whole
from spscanner_rag.text.token_counts import CountTokens, resolve_counter

PRICED_ENCODING = "o200k_base"  # counts tokens if a reply does not report them
SETTINGS = "settings.json"
REPLIES = "replies.jsonl"
SUMMARY = "summary.json"

RESULTS = files_of_run(["train.jsonl", "test.jsonl", SETTINGS, REPLIES, SUMMARY])
"""Names of the files that a run writes."""

_RETRIES = 6


def refuse_folder_of_inputs(folder: Path, inputs: Iterable[Path]) -> None:
    """Raise ``ValueError`` if the run would replace files that it reads."""
    check_results_folder(folder, RESULTS, inputs)


def note_settings(folder: Path, settings: Mapping[str, Any]) -> None:
    """Write the settings of a run, or compare them with those of the run to resume.

    `OtherRunError` if the folder holds a run with other settings.
    """
    path = folder / SETTINGS
    if path.exists():
        refuse_other_run(folder, earlier_run(path, "replies"), settings)
    else:
        write_whole(path, json.dumps(settings, indent=2) + "\n")


def asker_in(
    folder: Path, budget: Budget | None, workers: int, notify: Notify
) -> Asker:
    """Return an asker that stores replies in a folder.

    Its budget includes what earlier runs in the folder spent.
    """
    replies = ReplyFile(folder / REPLIES)
    if len(replies):
        notify(f"found {len(replies):,} replies, which are not asked for again")
    budget = replace(budget or Budget(), requests=replies.attempts, usage=replies.usage)
    return Asker(
        replies=replies,
        budget=budget,
        count_tokens=_price_counter(notify),
        workers=workers,
        retries=_RETRIES,
    )


def _price_counter(notify: Notify) -> CountTokens:
    """Return a counter of tokens as providers count them.

    Without the file of that encoding, it is the bundled checkpoint's tokenizer.
    """
    try:
        return resolve_counter(PRICED_ENCODING)
    except OSError as error:
        notify(f"tokens are counted with the bundled checkpoint's tokenizer: {error}")
        return bundled_token_counter()


def spent(budget: Budget) -> dict[str, Any]:
    """Return what a run and earlier ones in its folder spent, as in a summary."""
    return {
        "requests": budget.requests,
        "prompt_tokens": budget.usage.prompt_tokens,
        "reply_tokens": budget.usage.reply_tokens,
        "cost": round(budget.cost, 6),
    }


def write_summary(folder: Path, summary: Mapping[str, Any]) -> None:
    """Write the summary of a run into its folder."""
    write_whole(folder / SUMMARY, json.dumps(summary, indent=2) + "\n")
