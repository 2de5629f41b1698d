from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from agentbench._signatures.annotations import take_apart


def plain(message: int, ctx: object) -> None: ...


def keyword_only(message: int, *, ctx: object) -> None: ...


def variadic(*messages: int) -> None: ...


def formatted(prefix: str, message: int, ctx: object, *, suffix: str) -> None: ...


def logged(func: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return wrapper


class Worker:
    def work(self, message: int, ctx: object) -> None: ...

    @logged
    def logged_work(self, message: int, ctx: object) -> None: ...

    def __call__(self, message: str) -> None: ...


@pytest.mark.parametrize(
    ("func", "parameters", "annotation"),
    [
        (plain, ("message", "ctx"), "int"),
        (logged(plain), ("message", "ctx"), "int"),
        (lambda message: None, ("message",), None),
        (Worker.work, ("self", "message", "ctx"), "int"),
        (Worker().work, ("message", "ctx"), "int"),
        (Worker().logged_work, ("message", "ctx"), "int"),
        (Worker(), ("message",), "str"),
        (functools.partial(formatted, "-", suffix="!"), ("message", "ctx"), "int"),
        (functools.partial(Worker().work, ctx=None), ("message",), "int"),
        (functools.partial(functools.partial(formatted, "-"), suffix="!"), ("message", "ctx"), "int"),
        (functools.partial(Worker()), ("message",), "str"),
    ],
)
def test_parameters_and_annotations_are_those_that_a_caller_sees(func, parameters, annotation):
    callee = take_apart(func)
    assert callee.parameters == parameters
    assert callee.other_parameters == ()
    assert callee.annotations.get("message") == annotation
    assert callee.module_names is globals()


@pytest.mark.parametrize(("func", "others"), [(keyword_only, ("ctx",)), (variadic, ("messages",))])
def test_parameters_that_no_position_fills_stand_apart(func, others):
    assert take_apart(func).other_parameters == others


def test_a_builtin_has_parameters_but_no_annotations():
    callee = take_apart(len)
    assert (callee.name, callee.parameters) == ("len", ("obj",))
    assert callee.function is None
    assert not callee.annotations
    assert not callee.module_names
    assert not callee.closure
    assert callee.enclosing_scopes == ()


def test_a_builtin_that_hides_its_parameters_is_refused():
    with pytest.raises(ValueError, match="does not say its parameters"):
        take_apart(getattr)


@pytest.mark.parametrize("func", [staticmethod(plain), classmethod(lambda cls, message: None)])
def test_static_and_class_methods_are_refused_before_they_are_bound(func):
    with pytest.raises(ValueError, match=f"is a {type(func).__name__} object"):
        take_apart(func)


@pytest.mark.parametrize("thing", [5, "plain", None, Worker])
def test_what_is_no_function_is_refused(thing):
    with pytest.raises(TypeError, match="is not a function"):
        take_apart(thing)


def test_the_scopes_around_a_function_are_listed_from_the_inside():
    class Local:
        def method(self) -> None: ...

    scopes = ("Local", "test_the_scopes_around_a_function_are_listed_from_the_inside")
    assert take_apart(Local.method).enclosing_scopes == scopes


def test_names_that_are_closed_over_are_known_once_they_have_a_value():
    early = 1

    def inner() -> Any:
        return early, late

    assert take_apart(inner).closure == {"early": 1}
    late = 2
    assert take_apart(inner).closure == {"early": 1, "late": 2}
