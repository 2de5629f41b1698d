"""The fixed tables lead to what they name."""

from __future__ import annotations

import sys

import pytest

from agentbench.exceptions import MissingExtraError
from agentbench.serialization import class_names, registry
from agentbench.serialization.class_names import class_name, find_class
from agentbench.serialization.json_text import from_json


def test_every_class_of_the_library_is_where_the_table_says() -> None:
    for name, module in {**class_names._DATA_CLASSES, **class_names._MORE_CLASSES}.items():
        assert class_name(find_class(f"{module}.{name}")) == f"{module}.{name}"
        assert class_name(find_class(f"agentbench.formerly.{name}")) == f"{module}.{name}"


def test_every_tag_is_registered_by_the_module_that_the_table_names() -> None:
    pytest.importorskip("pandas")
    for tag in registry._MODULE_OF_TAG:
        found = registry.type_of_tag(tag)
        assert found is not None
        assert found.tag == tag


@pytest.mark.parametrize(
    ("tag", "module", "package"),
    [("dataframe", "frame_types", "pandas"), ("ndarray", "array_types", "numpy")],
)
def test_what_an_extra_brings_cannot_be_read_without_it_and_the_error_says_what_to_install(
    tag: str, module: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, f"agentbench.serialization.{module}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(registry._BY_TAG, tag, raising=False)
    with pytest.raises(MissingExtraError, match=rf"({package}|numpy) is not installed.*read a stored {tag}.*notebook"):
        from_json(f'{{"__t__":"{tag}","v":{{}}}}')
