"""Tell how to install the missing package of an extra: the only place that says how this package is installed."""

from importlib import import_module
from typing import Any


def install_line(extra: str) -> str:
    """The command that installs an extra, in a clone of the repository, since the package is on no index yet."""
    return f'pip install ".[{extra}]" in a clone of spscanner-rag'


def needed(module: str, owner: str, extra: str) -> Any:  # noqa: ANN401 - a module
    """Import a module of an extra.

    The ``ImportError`` says what needs it and how to install it.
    """
    package = module.partition(".")[0]
    name = {"haystack": "haystack-ai"}.get(package, package.replace("_", "-"))
    try:
        import_module(package)
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"{owner} needs {name}: {install_line(extra)}") from error
