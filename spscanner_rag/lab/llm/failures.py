"""Which failures of a provider pass, and which make every further request fail."""

import re

_LASTING = re.compile(
    r"insufficient_quota|exceeded your current quota|billing|credit balance|payment required|invalid.api.key|"
    r"authentication|permission denied|account.{0,20}(?:deactivated|suspended)",
    re.IGNORECASE,
)
_LASTING_CODES = frozenset({401, 402, 403, 404})
_LONGEST_WAIT = 300.0


class LastingFailureError(Exception):
    """The provider refuses every request: no quota, no permission, no such model. Nothing paid for is lost."""


def is_lasting(error: BaseException) -> bool:
    """Whether asking again cannot help: no quota left, a wrong key, no such model."""
    return _status(error) in _LASTING_CODES or bool(_LASTING.search(f"{type(error).__name__} {error}"))


def is_too_many(error: BaseException) -> bool:
    """Whether the provider says that requests come too fast."""
    return _status(error) == 429 or "ratelimit" in type(error).__name__.lower().replace("_", "")


def wait_asked_for(error: BaseException) -> float:
    """Seconds to wait that the provider names in the header ``retry-after``; 0 if it names none."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    get = getattr(headers, "get", None)
    try:
        return min(max(0.0, float(get("retry-after"))), _LONGEST_WAIT) if callable(get) else 0.0
    except (TypeError, ValueError):  # none, or a date
        return 0.0


def _status(error: BaseException) -> int | None:
    for holder in (error, getattr(error, "response", None)):
        code = getattr(holder, "status_code", None)
        if isinstance(code, int):
            return code
    return None
