"""Load scorers by their names on the command line and in evaluations."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Self

from spscanner_rag import baselines  # a module is imported when its name is used
from spscanner_rag.baselines.register import LoadOptions, ModelName, retriever_kinds

if TYPE_CHECKING:
    from spscanner_rag.scorers import Scorer

HYBRID_USAGE = "hybrid:A+B, the sum of the standardized scores of two or more of these"
CASCADE_USAGE = (
    "cascade:A>B@M, where B scores the M best units of A (default: 50), or "
    "cascade:A>B@Ntokens, where B reads N tokens of each unit, in the sentences that A "
    "scores best"
)

_STAGES = re.compile(
    r"(?P<first>[^>]+)>(?P<second>.+?)(?:@(?P<best>[1-9]\d{0,8})(?P<tokens>tokens)?)?"
)


class NameParts(NamedTuple):
    """The parts of a scorer's name, such as ``dense:MODEL``."""

    kind: str
    model: str  # "" if the name has none
    scorers: tuple[str, ...]  # the scorers that a hybrid adds, the stages of a cascade
    bound: Mapping[str, int]  # ``best`` or ``tokens`` of a cascade, from after the @

    @classmethod
    def of(cls, name: str) -> Self:
        """Split a name, whether or not such a scorer exists.

        Examples
        --------
        >>> from spscanner_rag.baselines.names import NameParts
        >>> NameParts.of("cascade:bm25>scanner@20").scorers
        ('bm25', 'scanner')
        """
        kind, _, model = name.strip().partition(":")
        if kind == "hybrid":
            return cls(kind, model, tuple(model.split("+")), {})
        stages = _STAGES.fullmatch(model) if kind == "cascade" else None
        if stages is None:
            return cls(kind, model, (), {})
        bound = {}
        if stages["best"]:
            bound[stages["tokens"] or "best"] = int(stages["best"])
        return cls(kind, model, (stages["first"], stages["second"]), bound)


def usages() -> dict[str, str]:
    """Return how each kind of retriever is written, and what it is, by its name."""
    usage_by_name = {kind.name: kind.usage for kind in retriever_kinds().values()}
    return usage_by_name | {"hybrid": HYBRID_USAGE, "cascade": CASCADE_USAGE}


def short_usages() -> list[str]:
    """Return how each kind of retriever is written, such as ``dense[:MODEL]``."""
    usages_of_kinds = [kind.short_usage for kind in retriever_kinds().values()]
    return [*usages_of_kinds, "hybrid:A+B", "'cascade:A>B@M'"]


def scorer_of(name: str, options: LoadOptions | None = None) -> "Scorer":
    """Load a scorer by a name in one of the forms of `usages`.

    Raises
    ------
    ValueError
        For an unknown name; the message lists the known ones.
    ImportError
        If a package is missing; the message says what to install.
    """
    check_name(name)
    options = options or LoadOptions()
    parts = NameParts.of(name)
    if not parts.scorers:
        return retriever_kinds()[parts.kind].load(parts.model, options)
    scorers = [scorer_of(part, options) for part in parts.scorers]
    if parts.kind == "cascade":
        first, second = scorers
        return baselines.Cascade(first, second, **parts.bound, unit=options.unit)
    return baselines.Hybrid(scorers)


def check_name(name: str) -> None:
    """Raise ``ValueError`` for an unknown name, and list the known ones.

    Nothing is loaded.
    """
    parts = NameParts.of(name)
    usage_by_kind = usages()
    if parts.kind not in usage_by_kind:
        raise ValueError(
            f"retriever {name!r} does not exist; expected one of: "
            f"{'; '.join(usage_by_kind.values())}"
        )
    usage = usage_by_kind[parts.kind]
    if parts.kind == "remote" and "@" in parts.model:
        raise ValueError(
            "retriever 'remote': got an address with a user or a password, which every "
            f"report would show; expected {usage}"
        )
    if not _is_complete(name, parts):
        raise ValueError(f"got the retriever {name!r}; expected {usage}")
    for part in parts.scorers:
        check_name(part)


def models_of(name: str) -> list[str]:
    """Return the models that a scorer's name has, whether or not they exist.

    Examples
    --------
    >>> models_of("cascade:bm25>dense:my-model@20")
    ['my-model']
    """
    parts = NameParts.of(name)
    if not parts.scorers:
        return [parts.model] if parts.model else []
    models: list[str] = []
    for part in parts.scorers:
        models += models_of(part)
    return models


def _is_complete(name: str, parts: NameParts) -> bool:
    """Whether a name has a model exactly where its kind needs or allows one."""
    if parts.kind in ("hybrid", "cascade"):
        return bool(parts.model and parts.scorers)
    match retriever_kinds()[parts.kind].model:
        case ModelName.NONE:
            return ":" not in name
        case ModelName.OPTIONAL:
            return bool(parts.model) or ":" not in name
        case ModelName.REQUIRED:
            return bool(parts.model)


def units_for(name: str, units: Sequence[str]) -> Sequence[str]:
    """Return the units to evaluate a retriever with.

    A scanner ranks sentences alone, since it was trained on them.
    """
    kind = retriever_kinds().get(NameParts.of(name).kind)
    if kind is not None and kind.only_sentences:
        return ["sentence"]
    return units
