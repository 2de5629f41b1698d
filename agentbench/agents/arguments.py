"""What was given as an argument, looked at where it is given: what it is, what was expected, how to mend it."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_origin

from agentbench.messages.options import ChatOptions

_SHOWN_LIMIT = 60


def told(value: object) -> str:
    """Say in a few words what a value is: scalars as they are, everything else by its type.

    What is in a collection or object is not said, since it may be long, and private.
    """
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if value is None or isinstance(value, (str, bytes, bool, int, float)):
        shown = repr(value)
        return shown if len(shown) <= _SHOWN_LIMIT else f"{shown[:_SHOWN_LIMIT]}…"
    if inspect.isroutine(value):
        return f"the function {value.__name__}"
    return f"of type {type(value).__name__}"


def did_you_mean(name: object, known: Iterable[str], *, likeness: float = 0.6) -> str:
    """A sentence that names the known name most like this one, with a blank before it; empty if none is.

    Args:
        name: As given.
        known: What might be meant.
        likeness: How like it has to be, from 0 to 1.
    """
    from difflib import get_close_matches  # noqa: PLC0415 - only for errors

    close = get_close_matches(str(name), list(known), n=1, cutoff=likeness)
    return f" Did you mean {close[0]!r}?" if close else ""


def check_mapping(name: str, value: object, expected: str) -> None:
    """Refuse what is neither a mapping nor `None`.

    Args:
        name: Of the argument.
        value: As given.
        expected: Example of a right one.

    Raises:
        TypeError: It is something else.
    """
    if value is not None and not isinstance(value, Mapping):
        message = f"{name} is {told(value)}. Expected a mapping, such as {expected}."
        raise TypeError(message)


def check_options(name: str, options: Any) -> None:
    """Refuse options that are no mapping, or whose `response_format` describes no form.

    Raises:
        TypeError: They are something else.
    """
    check_mapping(name, options, '{"temperature": 0.2}')
    form = options.get("response_format") if options else None
    if form is None or isinstance(form, Mapping) or (isinstance(form, type) and hasattr(form, "model_validate_json")):
        return
    expected = "Expected a pydantic model class, or a JSON schema as a mapping"
    if hasattr(form, "model_validate_json"):
        message = f"The option response_format is an instance. {expected}: give the class {type(form).__name__}."
    elif get_origin(form) is not None:
        message = f"The option response_format is {form!r}. {expected}: give a model with a field of that type."
    else:
        message = f"The option response_format is {told(form)}. {expected}."
    raise TypeError(message)


def check_instructions(name: str, value: object) -> None:
    """Refuse instructions that are neither text, nor several texts, nor `None`.

    Raises:
        TypeError: They are something else.
    """
    if value is None or isinstance(value, str):
        return
    if isinstance(value, (bytes, bytearray, Mapping)) or not isinstance(value, Iterable):
        message = f"{name} is {told(value)}. Expected text, or a list of texts."
        raise TypeError(message)
    if isinstance(value, (list, tuple, set, frozenset)):
        for part in value:
            if part is not None and not isinstance(part, str):
                message = f"In {name} there is {told(part)}. Expected text, or a list of texts."
                raise TypeError(message)


def check_whole_number(name: str, value: object) -> None:
    """Refuse what is no whole number. `True` and `False` are none.

    Raises:
        TypeError: It is something else.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        message = f"{name} is {told(value)}. Expected a whole number."
        raise TypeError(message)


def check_known(name: str, given: Mapping[Any, Any], known: Iterable[str]) -> None:
    """Refuse keys that are not known.

    Raises:
        ValueError: There is another one; the error names the known one most like it.
    """
    names = tuple(known)
    for key in given:
        if key not in names:
            message = f"{name} has the unknown key {key!r}.{did_you_mean(key, names)} Known are {', '.join(names)}."
            raise ValueError(message)


def check_constructor_keywords(made: object, keywords: Iterable[str], *, options: str = "") -> None:
    """Refuse keywords that no constructor of an object takes.

    Args:
        made: The object.
        keywords: Of which its constructor does not know whether another one takes them.
        options: The name of the argument for options, if there is one.

    Raises:
        TypeError: There is one. The error names the class of the object, and a keyword that it takes.
    """
    known = _constructor_keywords(type(made))
    for name in keywords:
        if name not in known:
            raise unexpected_keyword(type(made).__name__, name, known, options=options)


def unexpected_constructor_keyword(made: object, keywords: Iterable[str]) -> TypeError:
    """The error of keywords that the constructors of an object do not take."""
    name = next(iter(keywords))
    known = (each for each in _constructor_keywords(type(made)) if each != name)
    return unexpected_keyword(type(made).__name__, name, known)


def warn_of_near_misses(cls: type, keywords: Iterable[str]) -> None:
    """Warn of keywords that are kept as attributes and look like misspelt arguments of a constructor."""
    known = _constructor_keywords(cls)
    for name in keywords:
        if meant := did_you_mean(name, known, likeness=0.85):
            message = f"{cls.__name__}() keeps {name!r} as an attribute, since it has no argument of that name.{meant}"
            warnings.warn(message, RuntimeWarning, stacklevel=3)


def _constructor_keywords(cls: type) -> list[str]:
    constructors = (each.__dict__["__init__"] for each in cls.__mro__[:-1] if "__init__" in each.__dict__)
    return [name for constructor in constructors for name in _keywords_of(constructor)]


def unexpected_keyword(callee: str, name: str, known: Iterable[str], *, options: str = "") -> TypeError:
    """The error of a keyword that is not taken.

    Args:
        callee: Name of the class or method.
        name: Of the keyword.
        known: The keywords that are taken.
        options: The name of the one for options, if there is one.
    """
    mend = did_you_mean(name, known)
    if options and name in ChatOptions.__annotations__:
        mend = f" It is an option of the model: give {options}={{{name!r}: ...}}."
    return TypeError(f"{callee}() got an unexpected keyword argument {name!r}.{mend}")


def unexpected_run_keyword(agent: object, keywords: Mapping[str, Any]) -> TypeError:
    """The error of keywords that the `run` of an agent does not take."""
    cls: Any = type(agent)
    return unexpected_keyword(f"{cls.__name__}.run", next(iter(keywords)), _keywords_of(cls.run), options="options")


def _keywords_of(function: Callable[..., Any]) -> list[str]:
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = list(inspect.signature(function).parameters.values())[1:]
    return [each.name for each in parameters if each.kind not in variable]


def check_session(session: object) -> None:
    """Refuse what is no session of an agent: its id, say, or what it was stored as.

    Raises:
        TypeError: It is something else.
    """
    if session is None or (hasattr(session, "session_id") and not isinstance(session, type)):
        return
    if isinstance(session, str):
        mend = f"agent.create_session(session_id={told(session)})"
    elif isinstance(session, Mapping):
        mend = "AgentSession.from_dict(...) of it"
    else:
        mend = "agent.create_session()"
    message = f"session is {told(session)}. Expected an AgentSession: {mend}."
    raise TypeError(message)


def check_asked(
    session: object, options: object, function_invocation_kwargs: object, client_kwargs: object = None
) -> None:
    """Refuse arguments of a run that are not of their types.

    Raises:
        TypeError: One of them is something else.
    """
    check_session(session)
    if options is not None:
        check_options("options", options)
    if function_invocation_kwargs is not None:
        check_mapping("function_invocation_kwargs", function_invocation_kwargs, '{"user": "ada"}')
    if client_kwargs is not None:
        check_mapping("client_kwargs", client_kwargs, '{"timeout": 30}')
