"""`define_executor`: what `%%executor` does with a cell."""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agentbench.notebook.cells.workbench import older_code, ports_of, workbench
from agentbench.notebook.look.html import Page, Table
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.function_executor import FunctionExecutor
from agentbench.workflows.run.workflow import Workflow

__all__ = ["Definition", "define_executor"]


@dataclass(frozen=True)
class Definition:
    """The executor that `define_executor` made; a cell displays its ports.

    Attributes:
        name: The variable.
        executor: The executor in it.
        replaced: Whether the workbench had an executor of this id before.
        older: Variables whose workflow, run or stepper still has the older code: (name, `repr`).

    Example:
        made = define_executor("async def shout(text: str) -> str: return text.upper()", globals())
        made.executor.id
    """

    name: str
    executor: Executor
    replaced: bool = False
    older: tuple[tuple[str, str], ...] = ()

    def _page(self) -> Page:
        variable = f"variable {self.name}" if self.name != self.executor.id else ""
        replaced = "replaces the one before" if self.replaced else ""
        facts = [*filter(None, [*ports_of(self.executor), variable, replaced])]
        return Page(self.executor.id, facts=facts, tables=[Table("Older code", ("variable", "holds"), self.older)])

    def __str__(self) -> str:
        return self._page().text()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return self._page().bundle()


def define_executor(
    source: str,
    namespace: dict[str, Any],
    *,
    id: str | None = None,  # noqa: A002 - named as in executor()
    input: Any = None,  # noqa: A002 - named as in executor()
    output: Any = None,
) -> Definition:
    """Make an executor of the one function in a piece of code, and put it into its variable and on the workbench.

    A function of one parameter sends what it returns, unless that is None.

    Args:
        source: Python code with one function at its top level, `(message)` or `(message, ctx)`; imports and other
            statements are allowed beside it. It is executed.
        namespace: The variables that it reads and sets, such as `globals()`.
        id: Id of the executor; by default the name of the function.
        input: Type of the messages that it takes, as a type or its text; by default the function's annotation.
        output: Type of the messages that it sends, as a type or its text; by default the function's annotation.

    Raises:
        SyntaxError: The code is not Python.
        ValueError: The code has no function or several, or the signature does not fit; the variable is unchanged.
        Exception: An error that the code raises.

    Example:
        define_executor("async def shout(text: str) -> str: return text.upper()", globals())
    """
    statements = ast.parse(source, "<executor>").body
    functions = [each.name for each in statements if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))]
    if len(functions) != 1:
        found = f"There are {len(functions)}: {', '.join(functions)}." if functions else "There is none."
        msg = f"The code of an executor has exactly one function, async def name(message, ctx). {found}"
        raise ValueError(msg)
    (name,) = functions
    before = {name: namespace[name]} if name in namespace else {}
    try:
        filename = f"<executor {name}>"
        # So that tracebacks and inspect.getsource() find the lines without a file.
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        exec(compile(source, filename, "exec", dont_inherit=True), namespace)
        executor = _as_executor(namespace[name], id, input, output)
    except BaseException:
        namespace.pop(name, None)
        namespace.update(before)
        raise
    namespace[name] = executor
    replaced = workbench().put(executor, f"{source.strip()}\n# {id} {input} {output}")
    return Definition(name, executor, replaced is not None, tuple(_older_variables(namespace, executor.id)))


def _as_executor(made: Any, executor_id: str | None, input_: Any, output: Any) -> Executor:
    if isinstance(made, Executor):  # the function was decorated
        if executor_id or input_ is not None or output is not None:
            msg = "The function makes an executor by itself. Pass id and types to its decorator."
            raise ValueError(msg)
        return made
    returned = made.__annotations__.get("return")
    sends_result = len(inspect.signature(made).parameters) == 1 and returned not in (None, "None", type(None))
    if sends_result and output is None:
        output = returned
    return FunctionExecutor(made, executor_id, input=input_, output=output, send_result=sends_result)


def _older_variables(namespace: Mapping[str, Any], executor_id: str) -> Iterator[tuple[str, str]]:
    for name, value in list(namespace.items()):
        # No attributes of foreign objects are read.
        ours = not name.startswith("_") and type(value).__module__.startswith("agentbench.")
        workflow = value if isinstance(value, Workflow) else getattr(value, "workflow", None) if ours else None
        if not name.startswith("_") and isinstance(workflow, Workflow) and executor_id in older_code(workflow):
            yield name, repr(value)
