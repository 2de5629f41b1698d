"""The examples in docstrings of values run as they are written."""

from __future__ import annotations

import importlib
import re
import textwrap

import pytest

from agentbench._clock import runtime_defaults
from agentbench._lazy import find_packages
from agentbench.testing import set_runtime_defaults

NAMES = [
    *("AgentFrameworkException", "AgentResponse", "AgentResponseUpdate", "ChatOptions", "ChatResponse"),
    *("ChatResponseUpdate", "Clock", "Content", "IdSource", "Message", "ResponseStream", "SerializationMixin"),
    *("UsageDetails", "encode_checkpoint_value", "register_state_type", "run_sync", "set_runtime_defaults"),
]


@pytest.mark.parametrize("name", NAMES)
def test_the_example_runs(name: str) -> None:
    found = re.search(
        r"^( *)Example:\n((?:\1 +\S.*\n|\n)+)",
        getattr(importlib.import_module(find_packages(name)[0]), name).__doc__,
        re.MULTILINE,
    )
    assert found is not None
    before = runtime_defaults()
    try:
        exec(compile(textwrap.dedent(found[2]), name, "exec"), {"__name__": f"example_{name}"})
    finally:
        set_runtime_defaults(clock=before.clock, ids=before.ids, observe=before.observe)
