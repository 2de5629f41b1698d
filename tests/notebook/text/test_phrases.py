"""The phrases that every view uses."""

import pytest

from agentbench.notebook.text.phrases import duration_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0003, "0.3 ms"),
        (0.412, "412 ms"),
        (1.84, "1.8 s"),
        (59.9, "59.9 s"),
        (60, "1 min 0 s"),
        (125.9, "2 min 5 s"),
        (3720, "1 h 2 min"),
        (3_600_000, "1,000 h 0 min"),
    ],
)
def test_a_duration_is_in_units_that_people_read(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
