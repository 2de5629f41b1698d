"""Names as models get them, allow-lists, approval."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.agents.mcp.naming import normalize_prefix, tool_name_of


@pytest.mark.parametrize(
    ("name", "prefix", "exposed"),
    [
        ("read file/now", None, "read-file-now"),
        ("_read", None, "_read"),
        ("_read", "fs", "fs_read"),
        (".-read.", "my fs_.-", "my-fs_read."),
        ("read", "___", "read"),
        ("größe", "", "gr--e"),
    ],
)
def test_names(name, prefix, exposed):
    assert tool_name_of(name, normalize_prefix(prefix)).exposed == exposed


@given(st.text(min_size=1), st.text())
def test_exposed_names_have_only_characters_that_models_take(name, prefix):
    assert re.fullmatch(r"[A-Za-z0-9_.-]*", tool_name_of(name, normalize_prefix(prefix)).exposed)
