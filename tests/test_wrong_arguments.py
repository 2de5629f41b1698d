"""Every public function and method, called with values of wrong types: it works, or an error names the argument."""

from __future__ import annotations

import asyncio
import enum
import importlib
import inspect
import logging
import re
import typing
from collections.abc import Iterator
from typing import Any

import pytest

from agentbench._arguments import CALLED_OFTEN
from agentbench.exceptions import AgentFrameworkException
from tests.sane_values import make, required

pytest.importorskip("pandas")
pytest.importorskip("ipywidgets")

PACKAGES = ("", ".notebook", ".observability", ".openai", ".orchestrations", ".stategraph", ".testing")


class Wrong:
    def __repr__(self) -> str:
        return "Wrong()"


WRONG: tuple[Any, ...] = (None, 5, "text", [], Wrong())

#: They open a browser or a server, delete, change the process, wait for a person, or read what a program has written.
NOT_CALLED = {
    "adelete_thread", "as_mcp_server", "choose_engine_loop", "configure", "configure_otel_providers", "delete",
    "delete_chain", "delete_thread", "from_dict", "from_json", "load_ipython_extension", "set_runtime_defaults",
    "start_server", "unload_ipython_extension", "wait",
}  # fmt: skip

#: The engine, an agent or the notebook calls these, with values of its own, on objects that users only hand over.
CALLED_BY_US = {
    "acquire", "after_run", "apply_checkpoint", "before_run", "can_handle", "execute", "find_handler", "from_input",
    "from_message", "from_messages", "from_response", "from_str", "from_user_input", "get_messages", "input_of",
    "logging_callback", "on_checkpoint_restore", "on_checkpoint_save", "on_fresh", "on_rolled_back", "process",
    "progress_callback", "register", "release", "require_free", "restore_fields", "run_turn", "sampling_callback",
    "save_messages",
}  # fmt: skip
MADE_BY_US = {
    "AgentEvalConverter", "AgentMiddlewareLayer", "AgentTelemetryLayer", "ChatMiddlewareLayer", "ChatTelemetryLayer",
    "DiffPlot", "EdgeRunner", "EmbeddingTelemetryLayer", "FanInEdgeGroup", "FanOutEdgeGroup", "Frames",
    "FunctionInvocationLayer", "FunctionalWorkflow", "FunctionalWorkflowAgent", "FunctionalWorkflowDefinition",
    "GraphPanel", "HandoffAgentExecutor",
    "HandoffConfiguration", "HistoryProvider", "InProcRunnerContext", "InProcessExecution", "MagenticAgentExecutor",
    "ParticipantRegistry", "Runner", "RunnerContext", "SerializationMixin", "SkillFrontmatter",
    "StandardMagenticManager", "Stepper", "SwitchCaseEdgeGroup", "WorkflowGraphValidator", "WorkflowRunResult",
    "WorkflowViz",
}  # fmt: skip

#: `KeyError` is documented for unknown ids, and `RuntimeError` for an input that no handler takes; a reducer is called
#: for every update; an agent has checked what it passes on; no input means to go on with a thread.
ALLOWED = (
    "override_node(name", "remove_tool_messages(", "get_response(compaction_strategy", "get_response(tokenizer",
    "astream(stream_mode", "Workflow.run(message", "Inbox.form(request_id", "Inbox.answer(request",
    "Inbox.respond(request", "Inbox.withdraw(request", "(input_data", "replay(input", "Workflow.run(tools",
)  # fmt: skip


def public() -> Iterator[tuple[str, Any, type | None]]:
    """Yield a label, a function or class, and the class of whose objects it is a method."""
    seen: list[Any] = []
    for package in PACKAGES:
        module = importlib.import_module(f"agentbench{package}")
        for name in module.__all__:
            value = getattr(module, name)
            is_ours = callable(value) and str(getattr(value, "__module__", "")).startswith("agentbench.")
            if not is_ours or name in NOT_CALLED | MADE_BY_US | CALLED_OFTEN or value in seen:
                continue
            seen.append(value)
            if not inspect.isclass(value):
                if inspect.isfunction(value):
                    yield name, value, None
            elif not (
                issubclass(value, (BaseException, enum.Enum))
                or typing.is_typeddict(value)
                or getattr(value, "_is_protocol", False)
                or inspect.isabstract(value)
            ):
                yield name, value, None
                if make(value) is not None:
                    yield from methods(name, value)


def methods(label: str, cls: type) -> Iterator[tuple[str, Any, type]]:
    for name in dir(cls):
        member = inspect.getattr_static(cls, name)
        function = getattr(member, "__func__", member)
        if name.startswith("_") or name in NOT_CALLED | CALLED_BY_US or not inspect.isfunction(function):
            continue
        if function.__module__.startswith("agentbench."):
            yield f"{label}.{name}", function, cls


def complaint(call: Any, values: dict[str, Any], argument: str) -> str | None:
    """Call, await and return what is wrong with the error, if anything."""

    async def finish(result: Any) -> None:
        async with asyncio.timeout(5):
            if inspect.isawaitable(result):
                await result
            else:
                async for _ in result:
                    break

    try:
        result = call(**values)
        if inspect.isawaitable(result) or hasattr(result, "__anext__"):
            asyncio.run(finish(result))
    except AgentFrameworkException:
        return None
    except (TypeError, ValueError, OSError, NameError) as error:
        text = str(error)
        value = values.get(argument)
        says_it = repr(value) in text or type(value).__name__ in text or (isinstance(value, str) and value in text)
        return None if argument in text or says_it else f"{type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001 - whatever else it is
        return f"{type(error).__name__}: {error}"
    return None


def complaints_of(label: str, function: Any, cls: type | None) -> Iterator[str]:
    """Call with each wrong value for each argument; what fails in the same way with sane ones has another reason."""

    def call(**changed: Any) -> str | None:
        target = function if cls is None else getattr(make(cls), label.partition(".")[2])
        return complaint(target, {**(required(function, label) or {}), **changed}, next(iter(changed), "no argument"))

    if required(function, label) is None:
        return

    def known(told: object) -> str:
        return re.sub(r"[0-9a-f-]{36}", "", str(told))[:60]

    with_sane = known(call())
    for name, parameter in inspect.signature(function).parameters.items():
        varies = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY)
        if name == "self" or varies or any(each in f"{label}({name}" for each in ALLOWED):
            continue
        for wrong in WRONG:
            told = call(**{name: wrong})
            if told is not None and known(told) != with_sane:
                yield f"{label}({name}={wrong!r}): {told}"


@pytest.fixture(autouse=True)
def quiet(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.filterwarnings("ignore")
def test_a_value_of_a_wrong_type_works_or_is_refused_by_name(capsys):
    found = [each for label, function, cls in public() for each in complaints_of(label, function, cls)]
    assert found == []


def test_most_of_what_is_public_is_called():
    assert len([label for label, function, _ in public() if required(function, label) is not None]) > 400
