"""`Layout`, how the files of a kind of checkpoint are read."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from spscanner_rag.checkpoint.config import canonical_name, read_config
from spscanner_rag.mamba2.config import Mamba2Config


class Layout(NamedTuple):
    """How the files of a kind of checkpoint are read.

    ``ValueError`` for another kind.
    """

    # from the parsed ``config.json``
    config: Callable[[Mapping[str, Any]], Mamba2Config] = read_config
    # from the stored name of a tensor to ours
    name: Callable[[str], str] = canonical_name


SCANNER: Final = Layout()
