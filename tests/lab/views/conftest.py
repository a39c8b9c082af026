"""The page of a result that has everything."""

import pytest

from spscanner_lab.evaluation.rows import differences_of
from spscanner_lab.evaluation.tables import Table
from tests.apps.pages.checked_page import HOSTILE, CheckedPage, check_page
from tests.lab.views.result_pages import SETTINGS, page_with, records


@pytest.fixture(scope="module")
def markup() -> str:
    found = list(records())
    table = Table(
        f"Title {HOSTILE}", "About <it>.", ["name", "<b>"], [[HOSTILE, "1 & 2"]]
    )
    return page_with(found, differences_of(found, [(SETTINGS[0], SETTINGS[1])]), table)


@pytest.fixture(scope="module")
def page(markup: str) -> CheckedPage:
    return check_page(markup)
