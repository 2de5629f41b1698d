"""What an agent answers, made of what its model answered. What the client gave is not changed."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Any

from agentbench._clock import runtime_defaults
from agentbench.agents.sessions.attribution import UNNAMED, signed
from agentbench.exceptions import AgentInvalidResponseException
from agentbench.messages.content.content import Content
from agentbench.messages.response import AgentResponse, ChatResponse
from agentbench.messages.update import AgentResponseUpdate, ChatResponseUpdate, map_chat_to_agent_update


class AnswerForm:
    """Makes the updates and the response of one run.

    Args:
        agent: Whose answer it is.
        response_format: Of the run; that of the answer counts where the run has none.
        keeps_id: Whether the response has the id of the model's answer.
    """

    __slots__ = ("_agent", "_agent_id", "_author", "_keeps_id", "_response_format")

    def __init__(self, agent: Any, response_format: Any, *, keeps_id: bool) -> None:
        self._agent, self._response_format, self._keeps_id = agent, response_format, keeps_id
        self._author, self._agent_id = agent.name or UNNAMED, agent.id

    def update(self, update: ChatResponseUpdate) -> AgentResponseUpdate:
        """An update of the model as one of the agent."""
        for content in update.contents:
            if content.user_input_request:
                _give_id(content)
        return map_chat_to_agent_update(update, self._author, self._agent_id)

    def response(self, answer: ChatResponse[Any]) -> AgentResponse[Any]:
        """The model's answer as one of the agent.

        Raises:
            AgentInvalidResponseException: If the client gave something else than a `ChatResponse`.
        """
        if not isinstance(answer, ChatResponse):
            raise _unusable(self._agent, answer)
        messages = signed(answer.messages, self._agent)
        for message in messages:
            for content in message.contents:
                if content.user_input_request:
                    _give_id(content)
        wanted = self._response_format
        return AgentResponse(
            messages=messages,
            response_id=answer.response_id if self._keeps_id else None,
            agent_id=self._agent_id,
            created_at=answer.created_at,
            finish_reason=answer.finish_reason,
            usage_details=answer.usage_details,
            # What has to be read from the text is read when it is wanted: a run never fails for it.
            value=answer.value if answer._value_is_given else None,  # noqa: SLF001 - as above
            response_format=answer.response_format if wanted is None else wanted,
            continuation_token=answer.continuation_token,
            raw_representation=answer,
            additional_properties=answer.additional_properties,
        )


async def streamed_answer(stream: Any, seen: Sequence[ChatResponseUpdate]) -> ChatResponse[Any]:
    """The model's answer at the end of its stream.

    Args:
        stream: Exhausted.
        seen: The updates that it gave.

    Returns:
        What the client made of the stream. Where transform hooks changed what was given, the fold of what was given:
        the response of an agent says what its reader has read.
    """
    if not hasattr(stream, "get_final_response"):
        return ChatResponse.from_updates(seen)
    answer: Any = await stream.get_final_response()
    raw = getattr(stream, "updates", seen)
    if not isinstance(answer, ChatResponse) or (len(raw) == len(seen) and all(map(is_, raw, seen))):
        return answer  # type: ignore[no-any-return]
    folded: ChatResponse[Any] = ChatResponse.from_updates(seen, output_format_type=answer.response_format)
    folded._resolved_inputs = answer._resolved_inputs  # noqa: SLF001 - the two say the same in other words
    folded.additional_properties = {**answer.additional_properties, **folded.additional_properties}
    return folded


def partial_answer(seen: Sequence[ChatResponseUpdate]) -> ChatResponse[Any]:
    """What was answered until a stream was given up; its last message is marked as partial.

    Calls whose results did not come any more are left out: a service refuses a conversation in which they stand alone.
    """
    answer: ChatResponse[Any] = ChatResponse.from_updates(seen)
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


def _give_id(content: Content) -> None:
    """Whoever answers a request names it by its id. The content itself gets one: updates and response share it."""
    if not content.id:
        content.id = runtime_defaults().ids.new_id("call")


def _unusable(agent: Any, answer: object) -> AgentInvalidResponseException:
    message = (
        f"The client {type(agent.client).__name__} of {agent!r} answered with {answer!r}. "
        "Expected get_response to give a ChatResponse."
    )
    return AgentInvalidResponseException(message)
