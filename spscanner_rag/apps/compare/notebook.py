"""A comparison that a notebook shows as its page."""

import html
from dataclasses import dataclass
from functools import cached_property

from spscanner_rag.apps.compare.page import render_comparisons
from spscanner_rag.apps.compare.results import ComparedDocument


@dataclass(frozen=True, repr=False)
class Comparison(ComparedDocument):
    """The picks of several retrievers for one question about one document.

    A notebook shows the page. The fields are those of `ComparedDocument`.
    """

    @cached_property
    def page(self) -> str:
        """The comparison as one self-contained HTML page."""
        return render_comparisons([self])

    def _repr_html_(self) -> str:
        # the frame cannot access the page around it
        return (
            f'<iframe srcdoc="{html.escape(self.page)}" sandbox="allow-scripts"'
            ' title="Comparison of retrievers" width="100%" height="760"'
            ' style="border: 1px solid #8886; border-radius: 8px"></iframe>'
        )
