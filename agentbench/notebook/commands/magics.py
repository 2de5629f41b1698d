"""`%agentbench`, `%%executor` and `%%workflow`: thin magics over public functions."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agentbench._clock import runtime_defaults, set_runtime_defaults
from agentbench.exceptions import MagicUsageError
from agentbench.notebook.runtime import settings

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from agentbench.notebook.cells.executor_cell import Definition
    from agentbench.workflows.run.workflow import Workflow

Variables = dict[str, Any]

_USAGE = """\
%agentbench doctor             check what is installed and configured
%agentbench draw NAME          draw the workflow in this variable
%agentbench step NAME [N]      run N supersteps (1) with the stepper in this variable
%agentbench set KEY=VALUE ...  change settings, as configure() does
%%executor [id= in= out=]      make an executor from the function in this cell
%%workflow NAME                build a workflow from the text in this cell, such as: load -> check -> report"""

_EXECUTOR_USAGE = """\
%%executor [id=NAME] [in=TYPE] [out=TYPE]
    make an executor from the only function in this cell: async def name(message, ctx)

Without in= and out=, the annotations define the types. A function with one parameter sends the value that it
returns. Running the cell again replaces the executor, and lists the variables that still run the older code.

As a function: define_executor()."""

_WORKFLOW_USAGE = """\
%%workflow NAME
    build a workflow from the text in this cell, and assign it to this variable

    load -> check -> report                    each executor sends to the next
    check -> repair if has_gaps                only messages for which the condition is true
    check -> repair if has_gaps else report    to the first whose condition is true, otherwise to the last
    load => left, right                        fan-out: every message goes to both
    left, right => join                        fan-in: waits for a message from each
    # a comment

Names are variables of this notebook: executors and conditions. NAME.to_python() returns the equivalent code.

As a function: define_workflow()."""

_COMMANDS = ("doctor", "draw", "step", "set")

# The value of `observe` before the extension was loaded.
_before: list[bool] = []


def load_ipython_extension(ip: InteractiveShell) -> None:
    """Add the magics to IPython, and enable `observe` for the runs of this notebook, because its views need it.

    Called by `%load_ext agentbench`. Displays and patches nothing. Loading twice has no effect.

    Args:
        ip: The shell of the notebook.

    Example:
        %load_ext agentbench
        %agentbench doctor
    """
    if not _before:
        _before.append(runtime_defaults().observe)
        set_runtime_defaults(observe=True)
    register: Any = ip.register_magic_function
    for name, (kind, usage, function) in _MAGICS.items():

        def magic(*texts: str, function: Callable[..., Any] = function) -> Any:
            return function(*texts, ip.user_ns)

        magic.__doc__ = usage
        register(magic, magic_kind=kind, magic_name=name)
    ip.set_hook("complete_command", lambda _, event: completions(event.line, ip.user_ns), str_key="%agentbench")


def unload_ipython_extension(ip: InteractiveShell) -> None:
    """Remove the magics that `load_ipython_extension` added, and restore `observe`; called by `%unload_ext agentbench`.

    Executors and workflows made by cells stay in their variables.

    Args:
        ip: The shell of the notebook.

    Example:
        %unload_ext agentbench
    """
    for name, (kind, *_) in _MAGICS.items():
        ip.magics_manager.magics[kind].pop(name, None)
    ip.strdispatchers["complete_command"].strs.pop("%agentbench", None)
    if _before:
        set_runtime_defaults(observe=_before.pop())


# --- %agentbench ------------------------------------------------------------------------------------------------------


def agentbench_magic(line: str, variables: Variables) -> Any:
    """Run the command in a line, such as `draw wf`; an empty line prints the commands."""
    match _words(line):
        case []:
            print(_USAGE)  # noqa: T201 - a command prints
        case ["doctor"]:
            from agentbench.notebook.commands.doctor import doctor

            print(doctor().text)  # noqa: T201 - a command prints
        case ["draw", name]:
            from agentbench.notebook.graph.view import draw

            return draw(_variable(name, variables))
        case ["step", name, *count] if not count or (len(count) == 1 and count[0].isdecimal()):
            _step(name, variables, *map(int, count))
        case ["set", _, *_] as words if all("=" in word for word in words[1:]):
            pairs = (word.partition("=") for word in words[1:])
            try:
                settings.configure(**{key: settings.parse_setting(key, value) for key, _, value in pairs})
            except (TypeError, ValueError) as error:
                raise MagicUsageError(str(error)) from None
        case [name, *_]:
            what = f"%agentbench {name} has other arguments." if name in _COMMANDS else f"Unknown command {name!r}."
            msg = f"{what} Commands:\n{_USAGE}"
            raise MagicUsageError(msg)
    return None


def _step(name: str, variables: Variables, n: int = 1) -> None:
    from agentbench.notebook.cells.workbench import older_code
    from agentbench.notebook.history.log import lines_of_report
    from agentbench.notebook.stepping.stepper import Stepper

    value = _variable(name, variables)
    if not isinstance(value, Stepper):
        msg = f"{name} is a {type(value).__name__}, not a stepper. Make one: {name} = stepper(workflow, input)"
        raise MagicUsageError(msg)
    if older := older_code(value):
        print(f"older code: {', '.join(older)}")  # noqa: T201 - a command prints
    before = len(value.reports)
    value.step(n)
    for report in value.reports[before:]:
        print("\n".join(line.text for line in lines_of_report(report)))  # noqa: T201 - a command prints


def completions(line: str, variables: Variables) -> list[str]:
    """Return the completions of a line that starts with `%agentbench`: commands, settings, or suitable variables."""
    words = line.split()[1:]
    if line.endswith((" ", "\t")):
        words.append("")
    if len(words) <= 1:
        return list(_COMMANDS)
    if words[0] == "set":
        key, sign, _ = words[-1].partition("=")
        return settings.choices_of(key) if sign else [f"{name}=" for name in vars(settings.current())]
    from agentbench.notebook.stepping.stepper import Stepper
    from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
    from agentbench.workflows.run.run import WorkflowRun
    from agentbench.workflows.run.workflow import Workflow

    classes = {"draw": (Workflow, WorkflowBuilder, WorkflowRun), "step": (Stepper,)}
    fitting = classes.get(words[0], ()) if len(words) == 2 else ()
    return [name for name, value in list(variables.items()) if isinstance(value, fitting) and not name.startswith("_")]


# --- %%executor and %%workflow ----------------------------------------------------------------------------------------


def executor_magic(line: str, cell: str, variables: Variables) -> Definition:
    """Make an executor from the function in a cell; the line may have `id=`, `in=` and `out=`, each once."""
    from agentbench.notebook.cells.executor_cell import define_executor

    arguments: dict[str, str] = {}
    for word in _words(line):
        key, sign, value = word.partition("=")
        if key not in ("id", "in", "out") or not sign or not value or key in arguments:
            msg = f"%%executor does not take {word!r}. Expected:\n{_EXECUTOR_USAGE}"
            raise MagicUsageError(msg)
        arguments[key] = value
    return define_executor(
        cell, variables, id=arguments.get("id"), input=arguments.get("in"), output=arguments.get("out")
    )


def workflow_magic(line: str, cell: str, variables: Variables) -> Workflow:
    """Make a workflow from the text in a cell, and assign it to the variable in the line."""
    from agentbench.notebook.cells.workflow_cell import define_workflow

    name = line.strip()
    if not name.isidentifier():
        msg = f"%%workflow needs the name of one variable; got {name!r}. Expected:\n{_WORKFLOW_USAGE}"
        raise MagicUsageError(msg)
    variables[name] = workflow = define_workflow(cell, variables, name=name)
    return workflow


_MAGICS: dict[str, tuple[str, str, Callable[..., Any]]] = {
    "agentbench": ("line", _USAGE, agentbench_magic),
    "executor": ("cell", _EXECUTOR_USAGE, executor_magic),
    "workflow": ("cell", _WORKFLOW_USAGE, workflow_magic),
}


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        msg = f"The line {line.strip()!r} cannot be parsed: {error}. Close the quotation marks."
        raise MagicUsageError(msg) from None


def _variable(name: str, variables: Variables) -> Any:
    if name not in variables:
        msg = f"This notebook has no variable {name!r}."
        raise MagicUsageError(msg)
    return variables[name]
