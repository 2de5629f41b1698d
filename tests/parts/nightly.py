"""Whether tests run at night, when they may take long, and cases that run only then."""

import os
from typing import Any

import pytest

NIGHTLY = os.environ.get("AGENTBENCH_NIGHTLY") == "1"


def nightly(*values: Any, id: str | None = None) -> Any:  # noqa: A002 - as in `pytest.param`
    """Return a case of a parametrized test that takes long or rarely fails."""
    return pytest.param(*values, id=id, marks=pytest.mark.nightly)
