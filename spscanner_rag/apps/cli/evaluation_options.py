"""Options of ``spscanner eval`` that depend on each other or are lists."""

from collections.abc import Mapping, Sequence

from spscanner_rag.apps.cli.arguments import names_in


def first_stages_of(
    corpus: bool,
    among: int | None,
    first_stage: str | None,
    document_characters: int | None,
    other_run: Mapping[str, bool],
) -> list[str]:
    """The first stages of a run on corpora; ``ValueError`` for options that do not go together."""
    from spscanner_rag.lab.evaluation.corpus_study import NO_STAGE, WORDS
    from spscanner_rag.lab.retriever_names import NameParts, check_name

    if not corpus:
        for option, value in (("--first-stage", first_stage), ("--document-characters", document_characters)):
            if value is not None:
                raise ValueError(f"got {option} without --corpus; expected both, or neither")
        return []
    wrong = [option for option, given in other_run.items() if given]
    if wrong:
        raise ValueError(
            f"got --corpus and {wrong[0]}; expected one of them: make two runs, each with its own --out"
        )
    names = names_in("--first-stage", first_stage or (WORDS if among is None else NO_STAGE))
    for name in names:
        if name not in (NO_STAGE, WORDS):
            check_name(name)
            if NameParts.of(name).kind in ("scanner", "remote"):
                raise ValueError(f"--first-stage: got {name!r}; expected a retriever that ranks chunks")
    return names


def refuse_with_beir(
    among: int | None,
    document_characters: int | None,
    held_out: Sequence[str] | None,
    max_questions: int | None,
) -> None:
    """Raise ``ValueError`` for options of question files that were given with a folder in BEIR's layout."""
    given = {"--among": among, "--document-characters": document_characters, "--held-out": held_out,
             "--max-questions": max_questions}  # fmt: skip
    for option, value in given.items():
        if value is not None:
            raise ValueError(f"got {option} with a folder in BEIR's layout; expected it with question files")


def cutoffs_of(value: str) -> tuple[int, ...]:
    """The numbers of --cutoffs, ascending; those of the paper for an empty string."""
    from spscanner_rag.lab.evidence.metrics import CUTOFFS

    if not value:
        return CUTOFFS
    words = [word.strip() for word in value.split(",")]
    if not all(word.isascii() and word.isdigit() and 0 < int(word) < 10**6 for word in words):
        raise ValueError(f"--cutoffs: got {value!r}; expected whole numbers such as 1,2,5,10,20,50,100")
    return tuple(sorted({int(word) for word in words}))
