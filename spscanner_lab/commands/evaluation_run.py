"""A run of ``spscanner eval`` in a folder, from options to files.

Imported when a run begins.
"""

import os
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from spscanner_lab.commands.evaluation_answers import Answering
from spscanner_lab.commands.evaluation_options import EvaluationOptions
from spscanner_lab.commands.evaluation_scorers import load_scorers
from spscanner_lab.commands.evaluation_study import chosen_study
from spscanner_lab.evaluation.machine import processor_name
from spscanner_lab.evaluation.questioner import Questioner
from spscanner_lab.evaluation.records import Record, RecordFile, check_arguments
from spscanner_lab.evaluation.study import Study
from spscanner_lab.evaluation.trec_runs import write_runs
from spscanner_lab.views.evaluation_files import write_result
from spscanner_lab.views.evaluation_terminal import show_result
from spscanner_rag import __version__
from spscanner_rag.apps.cli.messages import tell
from spscanner_rag.apps.cli.model_options import RetrieverOptions
from spscanner_rag.apps.pages.terminal import new_bar, progress_bars
from spscanner_rag.baselines.bundled_token_counter import bundled_token_counter
from spscanner_rag.baselines.identity import identity_of
from spscanner_rag.baselines.settings import Setting
from spscanner_rag.scorers import Scorer
from spscanner_rag.system.folder_lock import folder_lock, refuse_in_use
from spscanner_rag.system.outputs import check_results_folder
from spscanner_rag.system.threads import use_threads
from spscanner_rag.text.escaping import one_line

RESULTS = (
    "run.json",
    "records.jsonl",
    "results.*",
    "differences.json",
    "calibration.json",
    "answers.json",
    "answers.jsonl",
    "answer-replies.jsonl",
    "*.trec",
)
"""Names of the files that a run writes, as patterns."""


def run_evaluation(
    data: Sequence[Path],
    options: EvaluationOptions,
    computes: RetrieverOptions,
    out: Path,
) -> str:
    """Run in a folder, write all files and show the result.

    Returns why the run ended early, "" if it did not. Everything that the options name
    is read and checked before anything is written.
    """
    check_results_folder(out, RESULTS, [*data, *computes.model_files()])
    chosen = chosen_study(data, options, computes.settings)
    study = chosen.study
    answers = None
    if options.answers is not None:
        answers = Answering(options, study)
    arguments = _arguments(options, computes, study)
    refuse_in_use(out)
    check_arguments(out, arguments)
    # each questioner fills it, and the scorers read it
    titles: dict[str, str] = {}
    use_threads(computes.threads)
    loaded = load_scorers(computes, titles, study, len(chosen.documents))
    identities = {}
    for name, scorer in loaded.by_name.items():
        identities[name] = identity_of(scorer)
    facts = _facts(chosen.bad_lines)
    stopped = ""
    # nothing is written before everything is loaded
    with folder_lock(out) as leftovers:
        file = RecordFile(out, arguments | {"retrievers": identities})
        _tell_what_is_there(out, len(file.records), len(leftovers))
        _ask(study, loaded.by_setting, titles, file)
        records = list(file.records.values())
        _write_rankings(study, records, out)
        result = study.result(records)
        if answers is not None:
            write_result(result, out, facts)  # it stays if answering is interrupted
            result, stopped = answers.added_to(result, loaded.by_setting, titles, out)
        write_result(result, out, facts)
    show_result(result, out)
    return stopped


def _arguments(
    options: EvaluationOptions, computes: RetrieverOptions, study: Study
) -> dict[str, Any]:
    """What must be the same when the run resumes."""
    return {
        "max_questions": options.max_questions,
        "seed": options.seed,
        "held_out": sorted(options.held_out or []),
        "device": computes.device,
        "dtype": computes.dtype,
        "trust_remote_code": computes.trust_remote_code,
        "version": __version__,
        **study.arguments,
    }


def _tell_what_is_there(out: Path, records: int, leftovers: int) -> None:
    if records:
        tell(f"{out}: found {records:,} records of an earlier run, which are kept")
    if leftovers:
        tell(f"{out}: removed {leftovers:,} unfinished files of a run that was killed")


def _ask(
    study: Study,
    scorers: Mapping[Setting, Scorer],
    titles: dict[str, str],
    file: RecordFile,
) -> None:
    """Ask every setting its questions, with a bar of progress for each."""
    # the same for all settings; works offline
    count_tokens = bundled_token_counter()
    with progress_bars(None) as bars:
        for setting_run in study.setting_runs:
            questioner = Questioner(setting_run, scorers, count_tokens)
            bar = new_bar(bars, setting_run.setting.label)
            questioner.ask_all(titles, file, bar)


def _write_rankings(study: Study, records: Sequence[Record], out: Path) -> None:
    """Write the TREC runs of the settings that rank judged documents."""
    settings = []
    for setting_run in study.setting_runs:
        if setting_run.qrels is not None:
            settings.append(setting_run.setting)
    write_runs(records, settings, out)


def _facts(bad_lines: int) -> dict[str, str]:
    """Facts about the run, which the page shows."""
    return {
        "Command": one_line(shlex.join(["spscanner", *sys.argv[1:]])),
        "Machine": f"{processor_name()}, {os.cpu_count()} cores, {platform.system()}",
        "Python": platform.python_version(),
        "Date": datetime.now(UTC).date().isoformat(),
        "Lines left out": str(bad_lines),
    }
