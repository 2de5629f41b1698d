"""Check arguments early; each error says what was passed, what was expected and how to fix it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agentbench._secrets import masked_repr
from agentbench._user_code import warn_user
from agentbench.messages.options import ChatOptions

_LONGEST = 60


def describe(value: object) -> str:
    """Describe a value for an error message: a scalar by its value, anything else by its type.

    Contents of collections and objects are omitted, because they may be long or private.
    """
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if value is None or isinstance(value, (str, bytes, bool, int, float)):
        text = masked_repr(value)
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    if inspect.isroutine(value):
        return f"the function {value.__name__}"
    return f"of type {type(value).__name__}"


def did_you_mean(name: object, known: Iterable[str], *, likeness: float = 0.6) -> str:
    """Return " Did you mean ...?" with the known name closest to `name`; empty if none is similar."""
    from difflib import get_close_matches  # noqa: PLC0415 - only for errors

    close = get_close_matches(str(name), list(known), n=1, cutoff=likeness)
    return f" Did you mean {close[0]!r}?" if close else ""


def check_mapping(name: str, value: object, example: str) -> None:
    """Raise a `TypeError` with an example if an argument is neither a mapping nor `None`."""
    if value is not None and not isinstance(value, (dict, Mapping)):  # the check for dict is much faster
        message = f"{name} is {describe(value)}. Expected a mapping, such as {example}."
        raise TypeError(message)


def check_options(name: str, options: Any) -> None:
    """Raise a `TypeError` unless options are a mapping whose `response_format` is a model class or a schema."""
    check_mapping(name, options, '{"temperature": 0.2}')
    form = options.get("response_format") if options else None
    if form is None or isinstance(form, Mapping) or (isinstance(form, type) and hasattr(form, "model_validate_json")):
        return
    expected = "Expected a pydantic model class or a JSON schema as a mapping"
    message = f"The option response_format is {describe(form)}. {expected}."
    raise TypeError(message)


def check_instructions(name: str, value: object) -> None:
    """Raise a `TypeError` unless instructions are text, a list of texts, or `None`."""
    if value is None or isinstance(value, str):
        return
    if isinstance(value, (bytes, Mapping)) or not isinstance(value, Iterable):
        message = f"{name} is {describe(value)}. Expected text or a list of texts."
        raise TypeError(message)


def check_known(name: str, mapping: Mapping[Any, Any], known: Iterable[str]) -> None:
    """Raise a `ValueError` if a mapping has an unknown key; the error suggests the closest known key."""
    names = tuple(known)
    for key in mapping:
        if key not in names:
            message = f"{name} has the unknown key {key!r}.{did_you_mean(key, names)} Known keys: {', '.join(names)}."
            raise ValueError(message)


def check_run_arguments(
    session: object, options: object, function_invocation_kwargs: object, client_kwargs: object
) -> None:
    """Raise a `TypeError` if an argument of a run or of a client request has the wrong type."""
    if session is not None and not hasattr(type(session), "session_id"):
        _check_session(session)
    if options is not None:
        check_options("options", options)
    if function_invocation_kwargs is not None:
        check_mapping("function_invocation_kwargs", function_invocation_kwargs, '{"user": "ada"}')
    if client_kwargs is not None:
        check_mapping("client_kwargs", client_kwargs, '{"timeout": 30}')


def _check_session(session: object) -> None:
    if hasattr(session, "session_id") and not isinstance(session, type):
        return
    if isinstance(session, str):
        mend = f"agent.create_session(session_id={describe(session)})"
    else:
        mend = "AgentSession.from_dict(...)" if isinstance(session, Mapping) else "agent.create_session()"
    message = f"session is {describe(session)}. Expected an AgentSession: {mend}."
    raise TypeError(message)


def warn_of_near_misses(cls: type, keywords: Iterable[str]) -> None:
    """Warn about extra keywords that look like misspelled constructor arguments."""
    known = constructor_keywords(cls)
    for name in keywords:
        if meant := did_you_mean(name, known, likeness=0.85):
            message = f"{cls.__name__}() has no argument {name!r} and stores it as an attribute.{meant}"
            warn_user(message, RuntimeWarning)


def unexpected_keyword(callee: str, name: str, known: Iterable[str], *, options: str = "") -> TypeError:
    """Return the error for an unexpected keyword; `options` names the argument for model options."""
    mend = did_you_mean(name, known)
    if options and name in ChatOptions.__annotations__:
        mend = f" It is a model option: pass {options}={{{name!r}: ...}}."
    return TypeError(f"{callee}() got an unexpected keyword argument {name!r}.{mend}")


def unexpected_run_keyword(agent: object, keywords: Iterable[str]) -> TypeError:
    """Return the error for keywords that an agent's `run` does not accept."""
    cls: Any = type(agent)
    return unexpected_keyword(f"{cls.__name__}.run", next(iter(keywords)), _keywords_of(cls.run), options="options")


def constructor_keywords(cls: type) -> list[str]:
    """Return the argument names of all constructors that a class inherits."""
    constructors = (each.__dict__["__init__"] for each in cls.__mro__[:-1] if "__init__" in each.__dict__)
    return [name for constructor in constructors for name in _keywords_of(constructor)]


def _keywords_of(function: Callable[..., Any]) -> list[str]:
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = list(inspect.signature(function).parameters.values())[1:]
    return [each.name for each in parameters if each.kind not in variable]
