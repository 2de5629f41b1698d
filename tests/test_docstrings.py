"""Every public name has a docstring, and every public function and class an example in it."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator

import pytest

from agentbench._lazy import public_packages

pytest.importorskip("ipywidgets")
pytest.importorskip("openai")


def public_objects() -> Iterator[tuple[str, object]]:
    for package in public_packages():
        module = importlib.import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            if (inspect.isclass(value) or inspect.isroutine(value)) and value.__module__.startswith("agentbench"):
                yield name, value


OBJECTS = dict(public_objects())


IMPORT = re.compile(r"^ *from (agentbench[\w.]*) import (\([^)]*\)|.+)$", re.MULTILINE)


def is_error(value: object) -> bool:
    return inspect.isclass(value) and issubclass(value, BaseException)


def test_every_public_name_has_a_docstring() -> None:
    assert len(OBJECTS) > 300
    assert [name for name, value in OBJECTS.items() if not (value.__doc__ or "").strip()] == []


def test_every_public_function_and_class_has_an_example() -> None:
    missing = {
        name for name, value in OBJECTS.items() if not is_error(value) and "Example" not in (value.__doc__ or "")
    }
    assert missing == set()  # errors share the examples of `agentbench.exceptions`


def test_the_imports_of_examples_work() -> None:
    imports = [found for value in OBJECTS.values() for found in IMPORT.findall(value.__doc__ or "")]
    assert len(imports) > 50
    for module, names in imports:
        for name in re.findall(r"\w+", re.sub(r"#.*| as \w+", "", names)):
            assert hasattr(importlib.import_module(module), name), f"from {module} import {name}"
