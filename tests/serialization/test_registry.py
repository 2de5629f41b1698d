"""The fixed tables lead to what they name."""

from __future__ import annotations

import sys

import pytest

from agentbench.exceptions import MissingExtraError
from agentbench.serialization import class_names, registry
from agentbench.serialization.class_names import class_name, find_class
from agentbench.serialization.json_text import from_json


@pytest.mark.parametrize("name", class_names._OF_LIBRARY)
def test_every_class_of_the_library_is_where_the_table_says(name: str) -> None:
    assert class_name(find_class(name)) == name


@pytest.mark.parametrize("tag", registry._MODULE_OF_TAG)
def test_every_tag_is_registered_by_the_module_that_the_table_names(tag: str) -> None:
    if registry._MODULE_OF_TAG[tag].startswith("agentbench.notebook."):
        pytest.importorskip("pandas")
    found = registry.type_of_tag(tag)
    assert found is not None
    assert found.tag == tag


def test_a_frame_cannot_be_read_without_pandas_and_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "agentbench.notebook.frame_types", None)
    monkeypatch.delitem(registry._BY_TAG, "dataframe", raising=False)
    with pytest.raises(MissingExtraError, match="read a stored dataframe"):
        from_json('{"__t__":"dataframe","v":{}}')
