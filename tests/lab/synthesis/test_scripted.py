"""The scripted stand-in for a model."""

import pytest

from spscanner_lab.synthesis.scripted import scripted_reply


def test_other_prompts_are_refused() -> None:
    with pytest.raises(ValueError, match="got a prompt with"):
        scripted_reply("What is the time?")
