"""The conversations of agents in a workflow, and the conversation of a whole run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from agentbench._secrets import mask_secrets
from agentbench._text.redact import fields_of, line_preview
from agentbench.messages.content.content import Content
from agentbench.messages.inputs import normalize_messages
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse
from agentbench.messages.update import AgentResponseUpdate
from agentbench.notebook.history.run_history import ExecutorCall, RunHistory


def conversation_in_run(run: RunHistory) -> list[Message]:
    """Return the conversation of a run, in order: input, agents, requests to people and their answers, outputs."""
    talk = _Talk()
    open_requests: Counter[str] = Counter()  # number of open requests by executor
    for step in run.supersteps:
        for call in step.all_calls.values():
            for received in call.messages:
                if step is run.supersteps[0] or open_requests[call.executor] > 0:  # the input, or an answer
                    open_requests[call.executor] -= 1
                    answer = messages_in_answer(received)
                    talk.add(list(_messages_in(received if answer is None else answer)) or [_message("user", received)])
            talk.add_results(call.results)
            open_requests[call.executor] = max(open_requests[call.executor], 0) + len(call.requests)
            for event in call.requests:
                if hasattr(event.data, "agent_response"):  # a draft, which may already be in the conversation
                    talk.add(event.data.agent_response.messages)
                else:
                    talk.messages.append(_message("assistant", event.data, call.executor))
        for event in step.outputs:
            if isinstance(event.data, AgentResponse):
                talk.add(event.data.messages)
            elif not isinstance(event.data, AgentResponseUpdate):
                talk.messages.append(_message("assistant", event.data, event.executor_id))
    return talk.messages


class _Talk:
    """Collects messages in order without duplicates, because executors pass on whole conversations."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._counts: Counter[object] = Counter()
        self._ids: set[object] = set()

    def add(self, conversation: Iterable[Message], *, is_new: bool = False) -> None:
        """Add the new messages of a conversation. A text that occurs twice in one conversation is kept twice."""
        counts: Counter[object] = Counter()
        for message in conversation:
            key = (message.role, message.author_name, str([content.to_dict() for content in message.contents]))
            counts[key] += 1
            known = (key, message.message_id)
            if (is_new and known not in self._ids) or counts[key] > self._counts[key]:
                self._counts[key] += 1
                self._ids.update([known] if message.message_id else [])
                self.messages.append(message)

    def add_results(self, results: Iterable[Any]) -> None:
        """Add the answers that an executor sent or yielded, with the messages before an agent's answer."""
        results = list(results)
        for result in results:
            if hasattr(result, "agent_response"):
                answer = result.agent_response.messages
                self.add(message for message in result.conversation if message not in answer)
                self.add(answer, is_new=True)
            elif isinstance(result, AgentResponse):
                self.add(result.messages)
        updates = [result for result in results if isinstance(result, AgentResponseUpdate)]
        if updates and not any(hasattr(result, "agent_response") for result in results):
            is_new = any(update.agent_id for update in updates)  # otherwise the executor only passes answers on
            self.add(AgentResponse.from_updates(updates).messages, is_new=is_new)


def messages_in_answer(answer: Any) -> list[Message] | None:
    """Return the messages in a response that can be typed as text; `None` for other responses."""
    if isinstance(answer, Message):
        return [answer]
    if hasattr(type(answer), "_from_text_"):  # a dataclass with the messages
        answer = next((value for _, value in fields_of(answer)), None)
    return answer if isinstance(answer, list) and all(isinstance(each, Message) for each in answer) else None


def _message(role: str, value: Any, author: str | None = None) -> Message:
    """Convert another value to a message."""
    content = value if isinstance(value, (str, Content)) else line_preview(mask_secrets(value))
    if messages_in_answer(value) == []:
        words = getattr(value, "_text_answer_", None)
        content = f"({words.without if words else 'no message'})"
    return Message(role, [content], author_name=author)


def conversation_of(call: ExecutorCall) -> list[Message]:
    """Return the conversation of an agent's last turn in a superstep; empty for executors without an agent."""
    sent = [result for result in call.results if hasattr(result, "agent_response")]
    if sent:
        return list(sent[-1].conversation)
    updates = [result for result in call.results if isinstance(result, AgentResponseUpdate)]
    responses = [result for result in call.results if isinstance(result, AgentResponse)]
    if updates:
        responses.append(AgentResponse.from_updates(updates))
    if not responses:
        return []
    received_messages = [message for received in call.messages for message in _messages_in(received)]
    return [*received_messages, *(message for response in responses for message in response.messages)]


def tool_calls_in(call: ExecutorCall) -> int:
    """Return the number of tool calls of an agent in a superstep."""
    responses = [result.agent_response for result in call.results if hasattr(result, "agent_response")]
    messages = [message for response in responses for message in response.messages] or conversation_of(call)
    return sum(content.type == "function_call" for message in messages for content in message.contents)


def _messages_in(received: Any) -> Iterator[Message]:
    if hasattr(received, "agent_response"):
        yield from received.conversation
    elif isinstance(received, list):
        for each in received:
            yield from _messages_in(each)
    elif isinstance(messages := getattr(received, "messages", received), (str, Message, list)):
        yield from normalize_messages(messages)
