"""Convert a model's answer to an agent's answer without changing the model's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import is_
from typing import Any

from agentbench._clock import runtime_defaults
from agentbench._secrets import masked_repr
from agentbench.agents.sessions.attribution import add_author
from agentbench.exceptions import AgentInvalidResponseException
from agentbench.messages.content.content import Content
from agentbench.messages.response import AgentResponse, ChatResponse
from agentbench.messages.update import AgentResponseUpdate, ChatResponseUpdate, map_chat_to_agent_update

_NO_REQUESTS = frozenset({"text", "text_reasoning", "function_result", "usage"})


def agent_update(update: ChatResponseUpdate, author: str, agent_id: str) -> AgentResponseUpdate:
    """Convert a model's update to an agent's update."""
    _give_ids(update.contents)
    return map_chat_to_agent_update(update, author, agent_id)


def agent_response(agent: Any, answer: Any, *, response_format: Any = None, has_id: bool = True) -> AgentResponse[Any]:
    """Convert a model's answer to an agent's response; `response_format` overrides the answer's."""
    if not isinstance(answer, ChatResponse):
        problem = (
            f"The client {type(agent.client).__name__} of {agent!r} answered with {masked_repr(answer)}. "
            "Expected get_response to return a ChatResponse."
        )
        raise AgentInvalidResponseException(problem)
    messages = add_author(answer.messages, agent)
    for message in messages:
        _give_ids(message.contents)
    return AgentResponse(
        messages=messages,
        response_id=answer.response_id if has_id else None,
        agent_id=agent.id,
        created_at=answer.created_at,
        finish_reason=answer.finish_reason,
        usage_details=answer.usage_details,
        # The value is parsed from the text on first access, so that a run never fails because of it.
        value=answer.value if answer._value_is_given else None,  # noqa: SLF001 - between the layers of one run
        response_format=answer.response_format if response_format is None else response_format,
        continuation_token=answer.continuation_token,
        raw_representation=answer,
        additional_properties=answer.additional_properties,
    )


def _give_ids(contents: Iterable[Content]) -> None:
    """Give an id to each request without one, because answers refer to it. Updates and response share the content."""
    for content in contents:
        if content.type not in _NO_REQUESTS and content.user_input_request and not content.id:
            content.id = runtime_defaults().ids.new_id("call")


async def streamed_answer(stream: Any, updates: Sequence[ChatResponseUpdate]) -> ChatResponse[Any]:
    """Return the final response of the client's stream, or the combined updates if hooks changed them."""
    if not hasattr(stream, "get_final_response"):
        return ChatResponse.from_updates(updates)
    answer: Any = await stream.get_final_response()
    raw = getattr(stream, "updates", updates)
    if not isinstance(answer, ChatResponse) or (len(raw) == len(updates) and all(map(is_, raw, updates))):
        return answer  # type: ignore[no-any-return]
    folded: ChatResponse[Any] = ChatResponse.from_updates(updates, output_format_type=answer.response_format)
    folded._resolved_inputs = answer._resolved_inputs  # noqa: SLF001 - as above
    folded.additional_properties = {**answer.additional_properties, **folded.additional_properties}
    return folded


def partial_answer(updates: Sequence[ChatResponseUpdate]) -> ChatResponse[Any]:
    """Return the partial answer of a stream that was closed early, marked as partial, without unanswered calls."""
    answer: ChatResponse[Any] = ChatResponse.from_updates(updates)
    contents = [each for message in answer.messages for each in message.contents]
    results = {each.call_id for each in contents if each.type == "function_result"}
    for message in answer.messages:
        message.contents = [
            each for each in message.contents if each.type != "function_call" or each.call_id in results
        ]
    answer.messages = [message for message in answer.messages if message.contents]
    if answer.messages:
        answer.messages[-1].additional_properties["partial"] = True
    return answer
