"""How to install what an extra adds, said in one place for every error message."""

from importlib import import_module
from typing import Any

from spscanner_rag.system.torch_absence import torch_is_installed

# Packages whose name on an index is not that of their module.
_DISTRIBUTIONS = {"haystack": "haystack-ai", "oxmsg": "python-oxmsg", "yaml": "PyYAML"}


# Extras that only the distribution with torch has.
_WITH_TORCH = frozenset({"all", "baselines", "cpu", "cuda", "examples"})


def install_line(extra: str) -> str:
    """The command that installs an extra.

    It runs in a clone of the repository, because the package is on no index yet. Where
    torch is not installed, it installs the extra of the light distribution, which does
    not bring it.

    Examples
    --------
    >>> install_line("pandas")
    'pip install ".[pandas]" in a clone of spscanner-rag'
    """
    project = "."
    if extra not in _WITH_TORCH and not torch_is_installed():
        project = "./distributions/light"
    return f'pip install "{project}[{extra}]" in a clone of spscanner-rag'


def import_extra(module: str, owner: str, extra: str) -> Any:  # noqa: ANN401 - a module
    """Import a module of an extra.

    The ``ImportError`` says what needs it and how to install it.

    Examples
    --------
    >>> import_extra("json", "this example", "files").__name__
    'json'
    >>> import_extra("no_such_package", "this example", "files")
    Traceback (most recent call last):
    ImportError: this example needs no-such-package: pip install ".[files]" in a ...
    """
    package = module.partition(".")[0]
    distribution = _DISTRIBUTIONS.get(package, package.replace("_", "-"))
    try:
        import_module(package)
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{owner} needs {distribution}: {install_line(extra)}"
        ) from error
