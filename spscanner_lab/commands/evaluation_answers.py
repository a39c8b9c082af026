"""Answers of a language model to the questions of an evaluation."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from spscanner_lab.answers.answering import (
    AnswerSet,
    answer_from,
    questions_with_answers,
)
from spscanner_lab.answers.contexts import (
    WHOLE_DOCUMENT,
    Contexts,
    document_windows,
    retriever_contexts,
)
from spscanner_lab.answers.report import (
    answer_lines,
    answer_rows,
    counts_of,
)
from spscanner_lab.answers.report_tables import answer_tables
from spscanner_lab.answers.scoring import Answerer
from spscanner_lab.commands.evaluation_options import EvaluationOptions
from spscanner_lab.evaluation.result import EvaluationResult
from spscanner_lab.evaluation.study import Study
from spscanner_lab.llm.asking import Asker
from spscanner_lab.llm.budget import Budget
from spscanner_lab.llm.language_models import named_model
from spscanner_lab.llm.reply_file import ReplyFile
from spscanner_rag.apps.pages.terminal import new_bar, progress_bars
from spscanner_rag.baselines.bundled_token_counter import bundled_token_counter
from spscanner_rag.baselines.settings import Setting
from spscanner_rag.scorers import Scorer
from spscanner_rag.system.whole_files import write_whole
from spscanner_rag.text.token_counts import resolve_counter


class Answering:
    """Answers to the questions of a study.

    Creating it loads the models, before any work starts.

    Raises ``ValueError`` or ``ImportError`` if questions are not on single documents or
    have no answers, or if a model cannot be loaded.
    """

    def __init__(self, options: EvaluationOptions, study: Study) -> None:
        if study.of_corpora:
            raise ValueError(
                "got --answers with --corpus, --among or a folder in BEIR's layout;"
                " expected questions on single documents: make two runs, each with its"
                " own --out"
            )
        self.options = options
        self.study = study
        self.questions = questions_with_answers(study.questions)
        self.judge = None if options.judge is None else named_model(options.judge)
        self.model = named_model(options.answers or "")
        self.count_tokens = resolve_counter("o200k_base")

    def added_to(
        self,
        result: EvaluationResult,
        scorers: Mapping[Setting, Scorer],
        titles: dict[str, str],
        out: Path,
    ) -> tuple[EvaluationResult, str]:
        """Return the result with answers, and why asking ended early ("" if not).

        Write ``answers.jsonl``.
        """
        options = self.options
        replies = ReplyFile(out / "answer-replies.jsonl")
        budget = Budget(
            max_requests=options.max_requests,
            requests=replies.attempts,
            usage=replies.usage,
        )
        asker = Asker(
            replies=replies, budget=budget, count_tokens=self.count_tokens, retries=5
        )
        answer_sets = self._answer_sets(self._contexts(scorers, titles), asker)
        rows = answer_rows(answer_sets, self.study.seed, bundled_token_counter())
        lines = [json.dumps(line) + "\n" for line in answer_lines(answer_sets)]
        write_whole(out / "answers.jsonl", "".join(lines))
        content: dict[str, object] = {
            "model": options.answers,
            "judge": options.judge,
            "form": options.answer_form,
            "spent": {"requests": replies.attempts, **replies.usage._asdict()},
            "asked": list(map(counts_of, answer_sets)),
            "rows": rows.of_sources,
        }
        if rows.of_categories:
            content["categories"] = rows.of_categories
        has_judge = options.judge is not None
        tables = [*result.tables, *answer_tables(answer_sets, rows, has_judge)]
        files = {**result.files, "answers.json": content}
        return replace(result, tables=tables, files=files), budget.stopped

    def _contexts(
        self, scorers: Mapping[Setting, Scorer], titles: dict[str, str]
    ) -> dict[Setting, Contexts]:
        """What each setting gives the model to read."""
        options = self.options
        contexts: dict[Setting, Contexts] = {}
        for setting in self.study.settings:
            contexts[setting] = retriever_contexts(
                setting,
                scorers[setting],
                titles,
                options.answer_units,
                options.answer_words,
            )
        if options.direct_answers:
            window = options.direct_window
            contexts[WHOLE_DOCUMENT] = lambda document, _: document_windows(
                document.text, window
            )
        return contexts

    def _answer_sets(
        self, contexts: Mapping[Setting, Contexts], asker: Asker
    ) -> Sequence[AnswerSet]:
        answer_sets = []
        answerer = Answerer(asker, self.model, self.judge)
        form: Any = self.options.answer_form  # one of `ANSWER_FORMS`
        with progress_bars(None) as bars:
            for setting, contexts_of_setting in contexts.items():
                bar = new_bar(bars, f"answers from {setting.label}")
                answers = answer_from(
                    setting, contexts_of_setting, self.questions, answerer, form, bar
                )
                answer_sets.append(answers)
        return answer_sets
