"""Reads the input and merges the results of nodes into the next state: pure functions on unchanged arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from operator import is_
from typing import Any, NoReturn

from pydantic import ValidationError

from agentbench._display import shorten
from agentbench.exceptions import (
    ConcurrentUpdateError,
    GraphError,
    InvalidUpdateError,
    ReducerError,
    StateValidationError,
)
from agentbench.messages.answers import answers_in, without_answers
from agentbench.messages.inputs import normalize_messages, to_messages
from agentbench.messages.message import Message
from agentbench.messages.whole_copies import ATOMS, copy_whole
from agentbench.serialization.plain import are_equal
from agentbench.stategraph.command import Command, Send
from agentbench.stategraph.merging.fields import MESSAGE_REDUCERS, StateField
from agentbench.stategraph.merging.state_fields import StateFields
from agentbench.stategraph.reducers import Overwrite, RemoveMessage, add_messages
from agentbench.stategraph.state import START, AgentState

Write = tuple[str, Any]
"""A field's name and its update, which may be an `Overwrite`."""


@dataclass(slots=True)
class TaskWrites:
    """The result of one activation of a node: its writes, the targets of its commands, if any, and warnings.

    `parent_goto` holds the commands for the outer graph.
    """

    node: str
    task_id: str
    writes: Sequence[Write] = ()
    goto: Sequence[str | Send] | None = None
    parent_goto: Sequence[Command] = ()
    warnings: Sequence[str] = ()


@dataclass(slots=True)
class MergedState:
    """The state after a superstep: all values, the names of the changed ones, who wrote them, and warnings."""

    values: dict[str, Any]
    writers: dict[str, list[str]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


# ---- reading the result of a node ------------------------------------------------------------------------------------


def read_return(
    value: Any, fields: StateFields, node: str, task_id: str = "", copied: Mapping[str, Any] | None = None
) -> TaskWrites:
    """Return the writes in a node's result; `copied` holds the fields of its state as the node received them.

    Raises:
        InvalidUpdateError: The result is not an update of this state.
    """
    if value.__class__ is dict:  # as most nodes return
        ignored: list[str] = []
        return TaskWrites(node, task_id, _writes(value, fields, node, copied, ignored), warnings=ignored)
    writes: list[Write] = []
    warnings: list[str] = []
    read = TaskWrites(node, task_id, writes, warnings=warnings)
    for part in value if _is_several(value) else (value,):
        if not isinstance(part, Command):
            writes += _writes(part, fields, node, copied, warnings)
        elif part.graph == Command.PARENT and not fields.is_agent_state:
            read.parent_goto = [*read.parent_goto, Command(update=part.update, goto=part.goto)]
        else:
            writes += _writes(part.state, fields, node, copied, warnings)
            writes += _writes(part.update, fields, node, copied, warnings)
            if part.graph == Command.PARENT:
                read.parent_goto = [*read.parent_goto, Command(goto=part.goto)]
                read.goto = read.goto or []
            elif part.goto is not None:
                read.goto = [*(read.goto or ()), *([part.goto] if isinstance(part.goto, (str, Send)) else part.goto)]
    return read


def _is_several(value: Any) -> bool:
    """Return whether a node's result consists of several updates, such as a list with commands."""
    return isinstance(value, Collected) or (
        isinstance(value, (list, tuple)) and any(isinstance(part, Command) for part in value)
    )


class Collected(tuple[Any, ...]):
    """The values that a generator yielded, each of them an update."""


def _writes(
    value: Any, fields: StateFields, node: str, copied: Mapping[str, Any] | None, warnings: list[str]
) -> list[Write]:
    if value is None:
        return []
    if isinstance(value, (str, Message, RemoveMessage)):
        value = [value]
    if not fields.is_agent_state:
        owner = fields.owner_of(value)
        update = value if owner is None else owner.values_of(value)
        if isinstance(update, Mapping):
            return _known_writes(update, fields, node, warnings)
    elif isinstance(value, (dict, Mapping)):
        return _declared_writes(value, fields, node)
    elif fields.is_instance(value):
        after = {name: value for name, value in value.__dict__.items() if name in fields.by_name}
        return [*updates_between(copied or {}, after).items()]
    added: Any = getattr(value, "messages", None)  # an agent's response
    if isinstance(value, (list, tuple)):
        added = _with_answers([*value])
    if isinstance(added, list) and all(isinstance(message, (Message, RemoveMessage)) for message in added):
        return [(_require_field("messages", fields, node), _stamp(added))] if added else []
    giver = "The update is" if node == START else f"Node {node!r} returned"
    message = (
        f"{giver} {shorten(value)}, of type {type(value).__name__}. Expected a dict of fields, "
        f"messages, text, a Command, an instance of {fields.cls.__name__}, or None."
    )
    raise InvalidUpdateError(message, node=node)


def _declared_writes(update: Mapping[str, Any], fields: StateFields, node: str) -> list[Write]:
    writes: list[Write] = []
    for name, value in update.items():
        field = _require_field(name, fields, node)
        if node != START and fields.by_name[field].reducer in MESSAGE_REDUCERS:
            value = _with_answers(value)
        writes.append((field, value if value.__class__ in ATOMS else _stamp(value)))
    return writes


def _with_answers(update: Any) -> Any:
    """Return an update of the conversation in which a node's text is an answer of the assistant."""
    if isinstance(update, Overwrite):
        return Overwrite(_with_answers(update.value))
    if isinstance(update, str):
        return Message.text_message(update, "assistant")
    if isinstance(update, list) and str in {*map(type, update)}:
        return [_with_answers(item) for item in update]
    return update


def _known_writes(update: Mapping[str, Any], fields: StateFields, node: str, warnings: list[str]) -> list[Write]:
    """Return the writes of an update without keys that are not fields, of which it warns."""
    writes: list[Write] = []
    for name, value in update.items():
        try:
            field = _require_field(name, fields, node)
        except InvalidUpdateError as error:
            warnings.append(f"{error.message} It is ignored.")
            continue
        is_conversation = fields.by_name[field].reducer in MESSAGE_REDUCERS
        writes.append((field, _stamp(_convert(value) if is_conversation else value)))
    return writes


def _convert(update: Any) -> Any:
    return Overwrite(to_messages(update.value)) if isinstance(update, Overwrite) else to_messages(update)


def _require_field(name: Any, fields: StateFields, node: str) -> str:
    if name in fields.by_name:
        return str(name)
    if name == "messages" and fields.conversation is not None:
        return fields.conversation
    if name == "execution_meta":
        problem = "writes 'execution_meta', which only the graph may write. Leave it out"
    else:
        close = get_close_matches(str(name), fields.by_name, n=1)
        hint = f". Did you mean {close[0]!r}? It has" if close else ". It has"
        hint += f" {', '.join(fields.by_name)}"
        problem = f"writes {name!r}, which is not a field of {fields.cls.__name__}{hint}"
    message = f"{'The input' if node == START else f'Node {node!r}'} {problem}."
    raise InvalidUpdateError(message, node=node, field=str(name))


def _stamp(update: Any) -> Any:
    """Return an update in which all messages have an id and a time."""
    if update.__class__ in ATOMS:
        return update
    inner = update.value if isinstance(update, Overwrite) else update
    for message in inner if isinstance(inner, list) else (inner,):
        if isinstance(message, Message) and not message.delta:
            message.stamp()
    return update


def updates_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the updates from the fields before to the fields after; for a list that only grew, its new items."""
    updates: dict[str, Any] = {}
    for name, value in after.items():
        old = before.get(name)
        if name in before and are_equal(old, value):
            continue
        if isinstance(old, list) and isinstance(value, list) and are_equal(value[: len(old)], old):
            updates[name] = _stamp(value[len(old) :])
        else:
            updates[name] = _stamp(Overwrite(value))
    return updates


# ---- merging all writes of a superstep -------------------------------------------------------------------------------


def merge(
    fields: StateFields,
    values: Mapping[str, Any],
    tasks: Sequence[TaskWrites],
    *,
    last_wins: bool = False,
    debug: bool = False,
    shares: bool = False,
) -> MergedState:
    """Return the state after the writes of all tasks, in their order. Either all writes apply, or it raises.

    Args:
        fields: The fields of the state.
        values: The committed state, which stays unchanged.
        tasks: The results of the tasks.
        debug: Treat reducers that change their left value as an error.
        last_wins: Let the last of several writes to a field without a reducer win; otherwise raise.
        shares: Take the written objects themselves, which their owner may change afterwards, instead of copies.

    Raises:
        ConcurrentUpdateError: Two tasks wrote to a field without a reducer; with an `AgentState`, different values.
        ReducerError: A reducer raised, or changed the value.
        StateValidationError: A value does not fit its field, or the fields do not fit together.
    """
    merged = MergedState({**values})
    by_field: dict[str, list[tuple[TaskWrites, Any]]] = {}
    for task in tasks:
        merged.warnings += task.warnings
        for name, update in task.writes:
            if update.__class__ not in ATOMS:
                if task.node != START:
                    update = without_new_answers(update, values.values(), task.node)
                if not shares:
                    is_whole = isinstance(update, Overwrite)
                    update = Overwrite(copy_whole(update.value)) if is_whole else copy_whole(update)
            by_field.setdefault(name, []).append((task, update))
    for name, updates in by_field.items():
        _merge_field(fields, fields.by_name[name], updates, merged, last_wins=last_wins, debug=debug)
    if by_field:
        try:
            checked = fields.check(merged.values)
        except _REFUSALS as error:
            _refuse(error, tasks[-1], fields.cls.__name__, None)
        if checked is not merged.values:
            merged.values = {**checked}
    return merged


def merge_finished(
    fields: StateFields, values: Mapping[str, Any], finished: Sequence[TaskWrites], *, last_wins: bool
) -> Mapping[str, Any]:
    """Return the state with the writes of the finished tasks of a superstep that has not ended.

    An `AgentState` stays as it was. So does any state if the writes do not fit together, which is an error when the
    superstep ends.
    """
    if fields.is_agent_state or not finished:
        return values
    try:
        return merge(fields, values, finished, last_wins=last_wins).values
    except GraphError:
        return values


def without_new_answers(update: Any, held: Iterable[Any], node: str) -> Any:
    """Return an update or a `Send` value of a node without answers to approval requests that are not in `held`.

    Only the input of the graph approves. A node may run an agent on the conversation, where such an answer would count.
    """
    inner = update.value if isinstance(update, Overwrite) else update
    messages = _messages_in(inner)
    if not messages or not answers_in(messages):
        return update
    keep = {id(answer) for value in held for answer in answers_in(_messages_in(value))}
    kept: list[Any] = []
    for item in inner if isinstance(inner, (list, tuple)) else [inner]:
        kept += without_answers([item], f"node {node!r}", keep) if isinstance(item, Message) else [item]
    return Overwrite(kept) if isinstance(update, Overwrite) else kept


def _messages_in(value: Any) -> list[Message]:
    return [
        message for message in (value if isinstance(value, (list, tuple)) else [value]) if isinstance(message, Message)
    ]


def _merge_field(
    fields: StateFields,
    state_field: StateField,
    updates: list[tuple[TaskWrites, Any]],
    merged: MergedState,
    *,
    last_wins: bool,
    debug: bool,
) -> None:
    name = state_field.name
    if len(updates) == 1:
        ((task, update),) = updates
        if isinstance(update, Overwrite) or state_field.reducer is None:
            value = update.value if isinstance(update, Overwrite) else update
            _overwrite(fields, name, task, value, merged.values)
        else:
            _reduce(fields, state_field, task, update, merged, debug=debug)
        merged.writers[name] = [task.node]
        return
    overwrites = [(task, update.value) for task, update in updates if isinstance(update, Overwrite)]
    plain = [(task, update) for task, update in updates if not isinstance(update, Overwrite)]
    if state_field.reducer is None:
        overwrites, plain = overwrites + plain, []
    if len(overwrites) > 1:
        _compare(name, overwrites, merged, last_wins=last_wins, may_agree=fields.is_agent_state)
    if overwrites:
        task, value = overwrites[-1]
        _overwrite(fields, name, task, value, merged.values)
    for task, update in plain:
        _reduce(fields, state_field, task, update, merged, debug=debug)
    merged.writers[name] = list(dict.fromkeys(task.node for task, _ in updates))


def _overwrite(fields: StateFields, name: str, task: TaskWrites, value: Any, values: dict[str, Any]) -> None:
    try:
        values[name] = fields.validate(name, value, values)
    except _REFUSALS as error:
        _refuse(error, task, name, value)


def _reduce(
    fields: StateFields, state_field: StateField, task: TaskWrites, update: Any, merged: MergedState, *, debug: bool
) -> None:
    """Merge an update into a field by its reducer."""
    name, values = state_field.name, merged.values
    left = values.get(name)
    try:
        if name not in values and not fields.is_agent_state and state_field.reducer not in MESSAGE_REDUCERS:
            reduced = update  # the first value of a field that had none
        else:
            reduced = state_field.merge_checked(left, update) if debug else state_field.merge(left, update)
    except Exception as error:
        problem = f"{type(error).__name__}: {error}".rstrip(".")
        message = (
            f"The reducer of {name!r} failed on what node {task.node!r} returned: {problem}. "
            f"It merges {type(update).__name__} into {type(left).__name__}."
        )
        facts = {"left": type(left).__name__, "right": type(update).__name__}
        raise ReducerError(message, context=facts, node=task.node, field=name, task_id=task.task_id) from error
    if state_field.reducer is add_messages and task.node != START:
        merged.warnings += _dropped_messages(name, task, left or [], update, reduced)
    try:
        values[name] = _validate_reduced(fields, state_field, left, reduced, values)
    except _REFUSALS as error:
        _refuse(error, task, name, reduced)


def _validate_reduced(
    fields: StateFields, state_field: StateField, left: Any, reduced: Any, values: Mapping[str, Any]
) -> Any:
    if not (state_field.is_appended_to and isinstance(left, list) and isinstance(reduced, list)):
        return fields.validate(state_field.name, reduced, values)
    assert state_field.items is not None
    new = reduced[len(left) :]
    validated = state_field.items.validate_python(new)
    return reduced if all(map(is_, validated, new)) else left + validated


_REFUSALS = (ValidationError, ValueError, AssertionError, TypeError)
"""The errors by which validators refuse a value."""


def _refuse(error: Exception, task: TaskWrites, name: str, value: Any) -> NoReturn:
    """Raise the error of a validator, with the names of the field and the node."""
    if isinstance(error, GraphError):
        raise error
    problem = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
    got = "" if value is None else f" It got {shorten(value)}."
    given = "The input" if task.node == START else f"The update of node {task.node!r}"
    message = f"{given} does not fit {name!r}: {problem}.{got} The state is unchanged."
    raise StateValidationError(message, node=task.node, field=name, task_id=task.task_id) from error


def _compare(
    name: str, writes: list[tuple[TaskWrites, Any]], merged: MergedState, *, last_wins: bool, may_agree: bool
) -> None:
    """Raise `ConcurrentUpdateError` if two tasks wrote to a field; or warn, if the last one wins.

    Equal values are fine if the writers `may_agree`.
    """
    first, value = writes[0]
    for task, other in writes[1:]:
        if task is first or (may_agree and are_equal(value, other)):
            continue
        values = "different values" if may_agree else "values"
        problem = f"Nodes {first.node!r} and {task.node!r} returned {values} for {name!r} in one superstep"
        if last_wins:
            merged.warnings.append(f"{problem}; the value of {writes[-1][0].node!r} is used.")
            return
        message = (
            f"{problem}, and it has no reducer. Add one, Annotated[list, operator.add]; or annotate it with "
            "replace_value, so that the last node wins; or let the nodes run one after the other."
        )
        nodes = [first.node, task.node]
        raise ConcurrentUpdateError(message, context={"nodes": nodes}, node=task.node, field=name, task_id=task.task_id)


def _dropped_messages(
    name: str, task: TaskWrites, left: list[Message], update: list[Message] | Message, reduced: list[Message]
) -> list[str]:
    """Return a warning for each message that was dropped because of a different one with the same id."""
    given: Any = [update] if isinstance(update, (Message, RemoveMessage)) else update or ()
    new = [message for message in given if isinstance(message, Message) and not message.delta]
    if len(reduced) == len(left) + len(new):
        return []
    there = {message.message_id: message for message in reduced}
    return [
        f"Node {task.node!r} returned another message with the id {message.message_id!r}, and {name!r} keeps the first "
        "one. To replace messages, annotate the field with upsert_messages."
        for message in new
        if message.message_id is not None and there.get(message.message_id, message) != message
    ]


# ---- inputs


def read_input(data: Any, fields: StateFields, current: Mapping[str, Any]) -> tuple[TaskWrites, list[Message]]:
    """Return an input as writes of `START`, and the messages in it; `current` has the current values.

    `messages`, `state` and `resume` are keywords of the input unless the state has a field of that name.

    Raises:
        InvalidUpdateError: A key is neither a field nor one of those keywords, or there is no field for messages.
    """
    if not fields.is_agent_state:
        read = read_return(_as_update(data, fields), fields, START, START)
        read.writes = [write for write in read.writes if write[0] in fields.inputs]
        return read, [
            item for name, value in read.writes if name == fields.conversation for item in _messages_in(value)
        ]
    writes: list[Write] = []
    messages: Any = None
    values: Any = None
    goto = None
    if isinstance(data, Command):
        returned = read_return(data, fields, START)
        writes, goto = [*returned.writes], returned.goto
    elif isinstance(data, Mapping):
        others = {**data}
        messages, values, _ = (_word(others, word, fields) for word in ("messages", "state", "resume"))
        writes += read_return(others, fields, START).writes
    elif isinstance(data, AgentState):
        values = data
    else:
        messages = data
    if fields.is_instance(values):
        values = fields.values_of(values)
        messages = values.pop(fields.conversation, messages)
    elif isinstance(values, AgentState):
        raise _wrong_class(values, fields)
    writes += read_return(values or None, fields, START).writes
    added = [message.stamp() for message in normalize_messages(messages)]
    if added and fields.by_name["context"].reducer is not add_messages:
        # A new turn never erases the conversation, whatever reducer the field has.
        writes.append(("context", Overwrite(add_messages(current.get("context", []), added))))
    else:
        writes += read_return(added, fields, START).writes
    return TaskWrites(START, START, writes, goto), added


def _as_update(data: Any, fields: StateFields) -> Any:
    """Return an input of a graph without an `AgentState` in the form of a node's result."""
    if isinstance(data, Mapping):
        others = {**data}
        values, _ = (_word(others, word, fields) for word in ("state", "resume"))
        return Collected((others, values))
    if isinstance(data, Command) or fields.owner_of(data) is not None:
        return data
    if isinstance(data, AgentState):
        raise _wrong_class(data, fields)
    return normalize_messages(to_messages(data))


def _wrong_class(values: AgentState, fields: StateFields) -> InvalidUpdateError:
    message = f"The input is a {type(values).__name__}. Expected a {fields.cls.__name__}, the state of this graph."
    return InvalidUpdateError(message, node=START)


def _word(data: dict[str, Any], word: str, fields: StateFields) -> Any:
    """Remove a keyword's value from an input, unless it is an ordinary field of that name."""
    return data.pop(word, None) if word not in fields.by_name or word == fields.conversation else None
