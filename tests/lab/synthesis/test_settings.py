"""Settings out of range."""

import pytest

from spscanner_lab.synthesis.settings import SynthesisSettings


def test_settings_out_of_range() -> None:
    for name, value in (
        ("strategy", "guess"),
        ("question_from", "nowhere"),
        ("sizes", ()),
        ("weights", (1.0,)),
        ("positions", (("start", "top"),)),
        ("test_share", 2),
        ("tries", 0),
        ("window_units", 10),
    ):
        with pytest.raises(ValueError, match=f"{name}: got"):
            SynthesisSettings(**{name: value})  # type: ignore[arg-type]
