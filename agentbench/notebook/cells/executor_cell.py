"""`define_executor`: the function behind `%%executor`."""

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


@dataclass(frozen=True)
class Definition:
    """The executor that `define_executor` made; a cell displays its ports.

    Attributes:
        name: The name of the variable.
        executor: The executor.
        replaced: Whether the workbench already had an executor with this id.
        older: Variables whose workflow, run or stepper still uses older code: (name, `repr`).

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
        replaced = "replaces the previous one" if self.replaced else ""
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
    """Make an executor from the only function in some code, and store it in its variable and on the workbench.

    A function with one parameter sends its result, unless that is None.

    Args:
        source: Python code with one function at top level, `(message)` or `(message, ctx)`; imports and other
            statements are also allowed. The code is executed.
        namespace: The variables of the code, such as `globals()`.
        id: Id of the executor; by default the name of the function.
        input: Type of the accepted messages, as a type or its text; by default the function's annotation.
        output: Type of the sent messages, as a type or its text; by default the function's annotation.

    Raises:
        SyntaxError: The code is not Python.
        ValueError: The code has no function or several, or an unsuitable signature; the variable does not change.
        Exception: Any error of the code.

    Example:
        define_executor("async def shout(text: str) -> str: return text.upper()", globals())
    """
    statements = ast.parse(source, "<executor>").body
    functions = [each.name for each in statements if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))]
    if len(functions) != 1:
        found = f"It has {len(functions)}: {', '.join(functions)}." if functions else "It has none."
        msg = f"The code of an executor needs exactly one function, async def name(message, ctx). {found}"
        raise ValueError(msg)
    (name,) = functions
    before = {name: namespace[name]} if name in namespace else {}
    try:
        filename = f"<executor {name}>"
        # Lets tracebacks and inspect.getsource() find the lines without a file.
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
            msg = "The function is already an executor. Pass id and types to its decorator."
            raise ValueError(msg)
        return made
    returned = made.__annotations__.get("return")
    sends_result = len(inspect.signature(made).parameters) == 1 and returned not in (None, "None", type(None))
    if sends_result and output is None:
        output = returned
    return FunctionExecutor(made, executor_id, input=input_, output=output, send_result=sends_result)


def _older_variables(namespace: Mapping[str, Any], executor_id: str) -> Iterator[tuple[str, str]]:
    for name, value in list(namespace.items()):
        # Attributes of foreign objects are not read.
        ours = not name.startswith("_") and type(value).__module__.startswith("agentbench.")
        workflow = value if isinstance(value, Workflow) else getattr(value, "workflow", None) if ours else None
        if not name.startswith("_") and isinstance(workflow, Workflow) and executor_id in older_code(workflow):
            yield name, repr(value)
