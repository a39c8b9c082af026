"""Layouts of links: windows, distances, and labels that never overlap."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spscanner_lab.synthesis.layout import THIRDS, layout_of, window_of
from spscanner_lab.synthesis.settings import SynthesisSettings


@pytest.mark.parametrize(
    ("first", "units", "window"),
    [
        (
            300,
            1000,
            {(290, 490), (115, 315)},
        ),  # [i - 10, i + 190) and [i - 185, i + 15)
        (20, 1000, {(10, 210)}),
        (950, 1000, {(765, 965)}),
        (5, 1000, {(0, 195)}),
        (100, 150, {(0, 115)}),
    ],
)
def test_windows_of_the_released_code(
    first: int, units: int, window: set[tuple[int, int]]
) -> None:
    found = {
        window_of((first, first + 5), units, 200, 10, random.Random(seed))
        for seed in range(20)
    }
    assert found == window


@given(
    st.integers(12, 700),
    st.integers(0, 10**6),
    st.sampled_from(list(THIRDS)),
    st.sampled_from(list(THIRDS)),
)
def test_layouts_stay_inside(units: int, seed: int, one: str, other: str) -> None:
    settings = SynthesisSettings(positions=((one, other),))
    layout = layout_of(units, settings, 0, random.Random(seed))
    first, last = layout.chunk
    assert 0 <= layout.window[0] <= first < last <= layout.window[1] <= units
    assert last - first == 5
    assert layout.window[1] - layout.window[0] <= 200
    assert not set(layout.shown) & set(range(first, last))
    for unit in layout.shown:
        if (
            layout.distance(unit) > settings.closest_link
        ):  # the label lists do not overlap
            assert not set(range(first - 2, last + 2)) & set(range(unit - 3, unit + 4))
