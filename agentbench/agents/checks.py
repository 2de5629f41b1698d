"""What was given as an argument, looked at where it is given: what it is, what was expected, how to mend it."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

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


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """A sentence that names the known name most like this one, with a blank before it; empty if none is."""
    from difflib import get_close_matches  # noqa: PLC0415 - only for errors

    close = get_close_matches(str(name), list(known), n=1)
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
        check_mapping("options", options, '{"temperature": 0.2}')
    if function_invocation_kwargs is not None:
        check_mapping("function_invocation_kwargs", function_invocation_kwargs, '{"user": "ada"}')
    if client_kwargs is not None:
        check_mapping("client_kwargs", client_kwargs, '{"timeout": 30}')
