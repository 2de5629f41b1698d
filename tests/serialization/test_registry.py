"""Stored names and tags lead to what they name."""

from __future__ import annotations

import json
import sys
from enum import Enum
from importlib import import_module

import pytest

from agentbench import Approval, BoundaryCheckpoint, Content, TurnToken
from agentbench._lazy import public_packages
from agentbench.exceptions import MissingExtraError
from agentbench.serialization import registry
from agentbench.serialization.class_types import find_class_type
from agentbench.serialization.json_text import from_json, to_json
from agentbench.serialization.pickled import _DATA_CLASSES, NameFinder, type_label
from agentbench.stategraph import Send
from agentbench.stategraph.toolnode import EndedCall


def storable_classes() -> list[type]:
    """Return the library's classes that the packages name, for users or for stored data."""
    pytest.importorskip("anywidget", reason="anywidget is not installed (extra notebook)")
    found: dict[type, None] = {}
    for name in public_packages():
        package = import_module(name)
        door = getattr(package, "_door", None)
        for value in [getattr(package, each) for each in (package.__all__ if door is None else door.all_homes)]:
            if isinstance(value, type) and value.__module__.startswith("agentbench."):
                found[value] = None
    return list(found)


DATACLASSES = {
    type(each): each
    for each in (
        Approval(True),
        Send("a", 1),
        TurnToken(),
        BoundaryCheckpoint("loop"),
        EndedCall(Content.from_text("")),
    )
}


def object_at(path: str) -> object:
    package, _, name = path.rpartition(".")
    return getattr(import_module(package), name)


def test_every_class_of_the_library_is_stored_by_its_public_path() -> None:
    classes = storable_classes()
    assert len(classes) > 300
    for cls in classes:
        text = to_json([cls, list[cls]])  # type: ignore[valid-type]
        assert from_json(text) == [cls, list[cls]]  # type: ignore[valid-type]
        path = json.loads(text)[0]["v"]
        assert path.rpartition(".")[0] in public_packages()
        assert object_at(path) is cls


def test_instances_are_stored_by_the_public_path_of_their_class() -> None:
    kinds = set()
    for cls in storable_classes():
        kind = find_class_type(cls)
        if kind is None or issubclass(cls, BaseException):
            continue
        kinds.add(kind.tag)
        assert object_at(kind.name) is cls
        if issubclass(cls, Enum):
            members = list(cls)
            assert from_json(to_json(members)) == members
        elif cls in DATACLASSES:
            assert from_json(to_json(DATACLASSES[cls])) == DATACLASSES[cls]
    assert kinds >= {"dataclass", "enum", "model"}


def test_pickles_may_name_the_data_classes_by_any_module_of_the_library() -> None:
    finder = NameFinder(())
    by_name = {cls.__name__: cls for cls in storable_classes()}
    for name in _DATA_CLASSES:
        assert finder.label_here(f"agentbench.elsewhere:{name}") == type_label(by_name[name])
        assert finder.find(by_name[name].__module__, name) in (
            by_name[name],
            finder.find_theirs(by_name[name].__module__, name),
        )


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
