"""`%agentbench`: a thin line magic over functions that can be called as well."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from agentbench._clock import runtime_defaults, set_runtime_defaults
from agentbench.notebook import settings

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = ["COMMANDS", "agentbench_magic", "load_ipython_extension", "unload_ipython_extension"]

_NAME = "agentbench"
_USAGE = """\
%agentbench doctor             what is installed and chosen
%agentbench draw NAME          draw the workflow in this variable
%agentbench step NAME [N]      take N supersteps (1) with the stepper in this variable
%agentbench set KEY=VALUE ...  change settings, as configure() does"""

# What `observe` was before the extension was loaded.
_before: list[bool] = []


def load_ipython_extension(ip: InteractiveShell) -> None:
    """Add `%agentbench`, and let runs of this notebook be observed: that is what its views are made of.

    Nothing is displayed and nothing is patched. Loading twice is loading once.
    """
    if not _before:
        _before.append(runtime_defaults().observe)
        set_runtime_defaults(observe=True)

    def magic(line: str) -> Any:
        return agentbench_magic(line, ip.user_ns)

    magic.__doc__ = _USAGE
    register: Any = ip.register_magic_function
    register(magic, magic_kind="line", magic_name=_NAME)


def unload_ipython_extension(ip: InteractiveShell) -> None:
    """Take away what `load_ipython_extension` added."""
    ip.magics_manager.magics["line"].pop(_NAME, None)
    if _before:
        set_runtime_defaults(observe=_before.pop())


def agentbench_magic(line: str, namespace: dict[str, Any]) -> Any:
    """Do what a line says.

    Args:
        line: The text after `%agentbench`.
        namespace: The variables of the notebook.

    Returns:
        What the cell shows, if the line is its last expression.

    Raises:
        ValueError: The line says nothing that is known; the message lists what is.
        NameError: There is no such variable.
    """
    words = shlex.split(line)
    command = COMMANDS.get(words[0]) if words else None
    if command is None:
        what = f"There is no command {words[0]!r}." if words else "A command is missing."
        msg = f"{what} There are:\n{_USAGE}"
        raise ValueError(msg)
    return command(words[1:], namespace)


def _doctor(words: list[str], namespace: dict[str, Any]) -> None:
    from agentbench.notebook.doctor import doctor

    _require(not words, "doctor", "nothing after it")
    print(doctor().text)  # noqa: T201 - a command prints


def _draw(words: list[str], namespace: dict[str, Any]) -> Any:
    from agentbench.notebook.graph_view import draw

    _require(len(words) == 1, "draw", "the name of one variable")
    return draw(_variable(words[0], namespace))


def _step(words: list[str], namespace: dict[str, Any]) -> None:
    from agentbench.notebook.step_log import lines_of_report
    from agentbench.notebook.stepper import Stepper

    _require(len(words) == 1 or (len(words) == 2 and words[1].isdecimal()), "step", "a variable and maybe a number")
    found = _variable(words[0], namespace)
    if not isinstance(found, Stepper):
        msg = f"{words[0]} is a {type(found).__name__}, not a stepper. Make one: {words[0]} = stepper(workflow, input)"
        raise TypeError(msg)
    before = len(found.reports)
    found.step(int(words[1]) if len(words) == 2 else 1)
    for report in found.reports[before:]:
        print("\n".join(line.text for line in lines_of_report(report)))  # noqa: T201 - a command prints


def _set(words: list[str], namespace: dict[str, Any]) -> None:
    _require(bool(words) and all("=" in word for word in words), "set", "one or more KEY=VALUE")
    pairs = (word.partition("=") for word in words)
    settings.configure(**{key: settings.parse_setting(key, value) for key, _, value in pairs})


COMMANDS = {"doctor": _doctor, "draw": _draw, "step": _step, "set": _set}


def _require(condition: bool, command: str, expected: str) -> None:
    if not condition:
        msg = f"%agentbench {command} takes {expected}.\n{_USAGE}"
        raise ValueError(msg)


def _variable(name: str, namespace: dict[str, Any]) -> Any:
    if name not in namespace:
        msg = f"There is no variable {name!r} in this notebook."
        raise NameError(msg)
    return namespace[name]
