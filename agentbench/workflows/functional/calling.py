"""Calls functions with a context that their callers do not pass, and recognizes repeated calls."""

from __future__ import annotations

import ast
import hashlib
import inspect
import re
import textwrap
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from agentbench.exceptions import UnstorableValueError
from agentbench.serialization.writer import JsonWriter


class ContextFunction:
    """An async function with an optional context parameter, which is named `ctx` or annotated `RunContext`.

    Raises:
        TypeError: The function is not async.
    """

    def __init__(self, function: Callable[..., Any], what: str) -> None:
        if not inspect.iscoroutinefunction(function):
            name = getattr(function, "__name__", function)
            msg = f"{what} {name!r} is not an async function. Define it with async def; pass a name as name='...'."
            raise TypeError(msg)
        self.function = function
        parameters = list(inspect.signature(function).parameters.values())
        found = (i for i, p in enumerate(parameters) if p.name == "ctx" or _names_context(p.annotation))
        self._place = next(found, None)
        self._context = None if self._place is None else parameters[self._place]
        self.parameters = [p for p in parameters if p is not self._context]
        """The parameters that callers fill."""

    def call(self, context: object, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Call it with these arguments, adding the context in its place."""
        if self._context is None or self._place is None:
            return self.function(*args, **kwargs)
        if self._context.kind is not inspect.Parameter.KEYWORD_ONLY and len(args) >= self._place:
            return self.function(*args[: self._place], context, *args[self._place :], **kwargs)
        return self.function(*args, **kwargs, **{self._context.name: context})


def _names_context(annotation: object) -> bool:
    return re.search(r"\bRunContext\b", str(annotation)) is not None  # a text if annotations are not evaluated


def fingerprint(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str | None:
    """Return a digest of arguments that is the same in every process; None if some cannot be stored."""
    try:
        text = JsonWriter().write([list(args), dict(kwargs)])
    except (UnstorableValueError, RecursionError):
        return None
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


_CONTAINERS = (bytearray, deque, dict, list, set)


def can_change_in_place(value: object) -> bool:
    """Return whether `change_in_place` can change a value."""
    return isinstance(value, _CONTAINERS) or hasattr(value, "__dict__")


def change_in_place(value: Any, changed: Any) -> None:
    """Replace the content of a container or an object by that of another one of its class."""
    if isinstance(value, (list, bytearray)):
        value[:] = changed
    elif isinstance(value, deque):
        value.clear()
        value.extend(changed)
    elif isinstance(value, (dict, set)):
        value.clear()
        value.update(changed)
    else:
        vars(value).clear()
        vars(value).update(vars(changed))


def code_digest(function: Callable[..., Any]) -> str:
    """Return a digest of a function's code, ignoring comments, layout, decorators and the docstring."""
    try:
        definition: Any = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        body = definition.body[1:] if ast.get_docstring(definition) is not None else definition.body
        text = "\n".join(map(ast.unparse, [definition.args, *body]))
    except (OSError, SyntaxError, TypeError):  # no source, as for exec()
        code = inspect.unwrap(function).__code__
        text = repr((code.co_code, code.co_names, [c for c in code.co_consts if not inspect.iscode(c)]))
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
