"""Shell calls and their results, for the service's shell and the local shell."""

from __future__ import annotations

import json
from typing import Any

from agentbench.agents.clients.openai.chat.messages import Wire, arguments_text, result_text
from agentbench.agents.clients.openai.hosted_tools import LocalShell
from agentbench.agents.clients.openai.wire import field, items, json_text, new_call_id, number, text
from agentbench.messages.content.content import Content

SHELL_ID = "shell:"
"""Prefix of the ids of local shell calls. The service needs their results in a separate form, even if it stores the
conversation and the request contains nothing else of the call.
"""


def read_shell_item(item: Any, shell: LocalShell | None, index: int | None = None) -> Content:
    """Convert a shell call or result; with a local shell, to a call of its function at `index` in a stream."""
    action, call_id = field(item, "action"), text(item, "call_id")
    commands = [str(command) for command in items(action, "commands")]
    if text(item, "type") == "shell_call_output":
        return Content.from_shell_tool_result(
            call_id=call_id,
            outputs=[_read_output(output) for output in items(item, "output")],
            max_output_length=number(item, "max_output_length"),
        )
    if shell is None:
        return Content.from_shell_tool_call(
            call_id=call_id,
            commands=commands,
            timeout_ms=number(action, "timeout_ms"),
            max_output_length=number(action, "max_output_length"),
            status=text(item, "status"),
        )
    return Content.from_function_call(
        SHELL_ID + (call_id or new_call_id()),
        shell.name,
        arguments=json_text(shell.arguments_of(commands)),
        additional_properties=None if index is None else {"tool_call_index": index},
        raw_representation=item,
    )


def _read_output(output: Any) -> Content:
    outcome = field(output, "outcome")
    return Content.from_shell_command_output(
        stdout=text(output, "stdout"),
        stderr=text(output, "stderr"),
        exit_code=number(outcome, "exit_code"),
        timed_out=text(outcome, "type") == "timeout",
    )


def shell_item(content: Content) -> Wire | None:
    """Convert a local shell call or its result, which is the function's output or error, to an input item."""
    item: Wire = {"call_id": (content.call_id or "").removeprefix(SHELL_ID)}
    if content.type == "function_call":
        value: Any = next(iter(json.loads(arguments_text(content)).values()), [])
        action = {"commands": value if isinstance(value, list) else [value]}
        return {"type": "shell_call", **item, "action": action, "status": "completed"}
    if content.type != "function_result":
        return None
    output = [
        {"stdout": one.stdout or "", "stderr": one.stderr or "", "outcome": _outcome(one.exit_code, one.timed_out)}
        for one in content.items or ()
        if one.type == "shell_command_output"
    ]
    if not output:
        written, has_failed = result_text(content), content.exception is not None
        texts = {"stdout": "", "stderr": written} if has_failed else {"stdout": written, "stderr": ""}
        output = [{**texts, "outcome": _outcome(int(has_failed))}]
    return {"type": "shell_call_output", **item, "output": output}


def _outcome(exit_code: int | None, timed_out: bool | None = None) -> Wire:
    return {"type": "timeout"} if timed_out else {"type": "exit", "exit_code": exit_code or 0}
