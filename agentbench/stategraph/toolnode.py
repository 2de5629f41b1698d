"""`ToolNode`: the node that runs the tools that a model calls."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import Any

from agentbench._copying import isolate
from agentbench.exceptions import ConcurrentUpdateError, GraphStopRequested, NodeError
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.observability.tool_reports import watcher
from agentbench.serialization.plain import are_equal
from agentbench.stategraph.command import Command
from agentbench.stategraph.interrupts import QUESTIONS, GraphInterrupt, current_questions, interrupt
from agentbench.stategraph.merging.state_fields import StateFields
from agentbench.stategraph.merging.updates import Collected
from agentbench.stategraph.prebuilt.tools.handoff import handoff_result, is_handoff_tool, target_of, targets_of
from agentbench.stategraph.tools.node_tool import NodeTool

_TIMEOUT_S = 300.0


@dataclass
class ToolResult:
    """A tool's result with an update of the state, or with an error.

    Args:
        message: The result for the model: text, a message, or any JSON value.
        state: An update of the state, merged by the fields' reducers.
        is_error: Whether the tool failed.

    Example:
        >>> def reserve(seat: str) -> ToolResult:
        ...     return ToolResult(f"Seat {seat} is yours.", state={"seats": [seat]})
    """

    message: Any = None
    state: Mapping[str, Any] | None = None
    is_error: bool = False


@dataclass
class EndedCall:
    """How a call ended: the result for the model, and its other effects."""

    content: Content
    state: Mapping[str, Any] | None = None
    command: Command | None = None


class ToolNode:
    """A node that runs the tools called in the last message concurrently, and adds their results.

    The graph fills a tool's parameters `state`, `config`, `tool_call_id`, `emit`, `runtime` and `store`, and hides them
    from models. A tool may return text, values, a `ToolResult` with an update of the state, or a `Command`. A call of
    a tool of `create_handoff_tool` runs no tool: the graph goes to its node. If the node has no such tool, and no other
    tool of this name, a call of `transfer_to_<node>` goes to that node too, as another node may offer it to the model.

    Args:
        tools: Functions, sync or async, or tools of agents.
        handle_errors: Turn errors of a call into its result, for the model to read; `False` fails the node.

    Raises:
        ValueError: Two tools have the same name.

    Example:
        >>> def get_weather(city: str) -> str:
        ...     '''Tell the weather.'''
        ...     return f"Fog in {city}."
        >>> graph.add_node("tools", ToolNode([get_weather])).add_edge("tools", "model")
    """

    def __init__(self, tools: Iterable[Any] = (), *, handle_errors: bool = True) -> None:
        self.tools: dict[str, Any] = {}
        self.handle_errors = handle_errors
        self._read: dict[str, NodeTool] = {}
        for tool in tools:
            self.add_tool(tool)

    def add_tool(self, tool: Any) -> ToolNode:
        """Add a tool, and return the node."""
        read = NodeTool(tool)
        if read.name in self.tools:
            message = f"Two tools have the name {read.name!r}. Rename one of the functions."
            raise ValueError(message)
        self.tools[read.name], self._read[read.name] = tool, read
        return self

    def all_tools(self) -> list[dict[str, Any]]:
        """Return names, descriptions and schemas of the tools, in the format of chat services."""
        return self.get_local_tool()

    get_tool_schemas = all_tools

    def get_local_tool(self, tags: Iterable[str] | str | None = None) -> list[dict[str, Any]]:
        """Return the tools that have at least one of the tags, as `all_tools` does; all of them without tags."""
        wanted = {tags} if isinstance(tags, str) else {*(tags or ())}
        return [tool.spec() for tool in self._read.values() if tags is None or wanted & tool.tags]

    @property
    def handoffs(self) -> list[str]:
        """The nodes to which the tools of `create_handoff_tool` lead."""
        return targets_of(self.tools.values())

    async def invoke(
        self,
        name: str,
        args: Mapping[str, Any] | None = None,
        tool_call_id: str = "",
        config: Mapping[str, Any] | None = None,
        state: Any = None,
    ) -> Any:
        """Call one tool as a model would, and return its message.

        Args:
            name: The name of the tool.
            args: Its arguments.
            tool_call_id: The id of the call.
            config: The configuration, for a tool that takes it.
            state: The state, for a tool that takes it.

        Returns:
            The message with the result, which a node can return; a `ToolResult` with the message, if the tool updates
            the state; or the tool's `Command`.

        Example:
            >>> message = await ToolNode([get_weather]).invoke("get_weather", {"city": "Oslo"}, "call_1", {}, None)
        """
        call = Content.from_function_call(tool_call_id, name, arguments=dict(args or {}))
        gets = {"config": config or {}, "runtime": None, "emit": lambda data: None, "store": None}
        ended = await self._call(call, state, gets)
        if ended.command is not None:
            return ended.command
        message = Message.tool_message([ended.content])
        return message if ended.state is None else ToolResult(message, ended.state)

    def __repr__(self) -> str:
        return f"ToolNode({', '.join(self.tools)})"

    async def __call__(
        self, state: Any, fields: StateFields, config: dict[str, Any], runtime: Any, emit: Any, store: Any
    ) -> Any:
        """Run the calls of the last message, and return their results in the order of the calls."""
        messages = fields.messages_in(state)
        if not messages:
            message = f"Node {config['node']!r} found no message. Let a model answer before it."
            raise NodeError(message, "NODE_003", node=config["node"])
        asking = messages[-1]
        calls = [content for content in asking.contents if content.type == "function_call"]
        if not calls:
            message = f"Node {config['node']!r} found no tool call in the last message. Route to it only after one."
            raise NodeError(message, "NODE_002", node=config["node"])
        observer = watcher.get()  # which tools in worker threads may call too
        emit = emit if observer is None else observer.show
        gets = {"config": config, "runtime": runtime, "emit": emit, "store": store}
        names: list[str] = []  # models may give one id to several calls, but each call has questions of its own
        for call_id in (call.call_id or "" for call in calls):
            numbered = (f"{call_id}_{number}" for number in count(2))
            names.append(next(name for name in chain([call_id], numbered) if name not in names))
        tasks = [
            asyncio.ensure_future(self._end_of(call, name, asking, state, gets))
            for call, name in zip(calls, names, strict=True)
        ]
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        # Users see the questions in the order of the calls, whichever call asked first.
        current_questions().open.sort(key=lambda question: names.index(question.tool_call_id or ""))
        errors = [result for result in ended if isinstance(result, BaseException)]
        for error in sorted(errors, key=lambda error: isinstance(error, GraphInterrupt)):
            raise error  # before the questions, because a failed node asks nothing
        return Collected(_updates([result for result in ended if isinstance(result, EndedCall)], calls, fields))

    async def _end_of(
        self, call: Content, name: str, asking: Message, state: Any, gets: Mapping[str, Any]
    ) -> EndedCall:
        """Return how a call ended: now, or in an earlier attempt at this task."""
        questions = current_questions()
        done, key = questions.done, f"{asking.message_id}:{name}"
        if key not in done:
            QUESTIONS.set(replace(questions, asked=0, tool_call_id=name))
            done[key] = await self._call(call, state, gets)
        ended: EndedCall = done[key]
        return ended

    def _handoff_target(self, name: str) -> str | None:
        """Return the node to which the graph goes instead of running a tool; `None` if the call is not a handoff."""
        if name in self.tools:
            return target_of(self.tools[name])
        _, target = is_handoff_tool(name)
        questions = QUESTIONS.get()
        is_node = questions is not None and target in questions.nodes
        return target if is_node and not self.handoffs else None

    async def _call(self, call: Content, state: Any, gets: Mapping[str, Any]) -> EndedCall:
        name, call_id = call.name or "", call.call_id or ""
        target = self._handoff_target(name)
        if target is not None:
            return EndedCall(_result(call_id, handoff_result(target)), command=Command(goto=target))
        limit = gets["config"].get("tool_timeout", _TIMEOUT_S) or None
        try:
            tool = self._read.get(name)
            if tool is None:
                return _failure(call_id, f"There is no tool {name!r}. Tools: {', '.join(self.tools)}.")
            arguments = tool.arguments(call)
            if tool.needs_approval:
                question = f"Call {name} with {arguments}?"
                value = {"tool": name, "arguments": arguments}
                value |= {"capabilities": tool.capabilities} if tool.capabilities else {}
                if not interrupt(value, message=question, response_schema=bool):
                    return _failure(call_id, f"A person declined the call to {name}.")
            state_copy = isolate(state)
            given = {**gets, "state": state_copy, "tool_call_id": call_id}
            ended = _to_ended_call(call_id, await asyncio.wait_for(tool.call(arguments, given), limit))
            if state_copy != state and (questions := QUESTIONS.get()) is not None:
                questions.warnings.append(
                    f"Tool {name!r} changed its copy of the state, which has no effect. Write: "
                    "return ToolResult(..., state={...})."
                )
            return ended
        except TimeoutError:
            if not self.handle_errors:
                raise
            return _failure(call_id, f"{name} took longer than {limit:g} s.")
        except Exception as error:
            if not self.handle_errors or isinstance(error, GraphStopRequested):
                raise
            return _failure(call_id, f"{type(error).__name__}: {error}")


def _to_ended_call(call_id: str, value: Any) -> EndedCall:
    if isinstance(value, Command):
        return EndedCall(_result(call_id, ""), command=value)
    if isinstance(value, ToolResult):
        said = value.message
        content = _failure(call_id, str(said)).content if value.is_error else _result(call_id, said)
        return EndedCall(content, value.state)
    return EndedCall(_result(call_id, value))


def _result(call_id: str, value: Any) -> Content:
    said = value.text if isinstance(value, Message) else "" if value is None else value
    return Content.from_function_result(call_id, result=said)


def _failure(call_id: str, problem: str) -> EndedCall:
    facts = {"is_error": True, "status": "failed"}
    return EndedCall(
        Content.from_function_result(call_id, result=problem, exception=problem, additional_properties=facts)
    )


def _updates(ended: Sequence[EndedCall], calls: Sequence[Content], fields: StateFields) -> list[Any]:
    """Return the updates of the state from the calls, in order; the results come first."""
    reducers = fields.by_name
    first: dict[str, tuple[str, Any]] = {}
    for each, call in zip(ended, calls, strict=True):
        for name, value in (each.state or {}).items():
            if name not in reducers or reducers[name].reducer is not None:
                continue
            tool, other = first.setdefault(name, (call.name or "", value))
            if not are_equal(value, other):
                message = (
                    f"The tools {tool!r} and {call.name!r} return different values for {name!r}, which has no reducer. "
                    "Add one: Annotated[list, operator.add]; or annotate it with replace_value."
                )
                raise ConcurrentUpdateError(message, context={"tools": [tool, call.name]}, field=name)
    # One update, because streams and snapshots show one value for each field.
    results: list[Any] = [[Message.tool_message([call.content]) for call in ended]]
    results += [dict(call.state) for call in ended if call.state]
    return results + [call.command for call in ended if call.command is not None]
