"""Items of an evaluation: a conversation, split into query and response, with the expected values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from agentbench.messages.content.content import Content
from agentbench.messages.message import Message

ConversationSplitter: TypeAlias = Callable[[list[Message]], tuple[list[Message], list[Message]]]
"""Splits a conversation into the query side and the response side."""


class ConversationSplit(StrEnum):
    """The point at which a conversation is split into query and response. Each member is a `ConversationSplitter`.

    Attributes:
        LAST_TURN: Split after the last user message, to score the last answer.
        FULL: Split after the first user message, to score the whole conversation.

    Example:
        >>> asked, answered = ConversationSplit.LAST_TURN([Message("user", "2 + 2?"), Message("assistant", "4")])
        >>> answered[0].text
        '4'
    """

    LAST_TURN = "last_turn"
    FULL = "full"

    def __call__(self, conversation: list[Message]) -> tuple[list[Message], list[Message]]:
        """Return the query side and the response side. Without a user message, everything is the response."""
        turns = _user_indexes(conversation)
        cut = 0 if not turns else 1 + (turns[-1] if self is ConversationSplit.LAST_TURN else turns[0])
        return conversation[:cut], conversation[cut:]


@dataclass
class ExpectedToolCall:
    """A tool call that is expected, optionally with certain arguments.

    Args:
        name: The name of the tool.
        arguments: The arguments that the call must have; others are allowed. With `None`, arguments are ignored.

    Example:
        >>> ExpectedToolCall("get_weather", {"city": "Oslo"})
        ExpectedToolCall(name='get_weather', arguments={'city': 'Oslo'})
    """

    name: str
    arguments: dict[str, Any] | None = None


@dataclass
class EvalItem:
    """One interaction to score.

    Args:
        conversation: All messages, including tool calls and their results.
        tools: The tools of the agent.
        context: Background information for checks, such as the documents on which the answer must be based.
        expected_output: The correct answer.
        expected_tool_calls: The expected tool calls.
        split_strategy: Splits the conversation into query and response; by default after the last user message.
        error: The reason why there is no response. Evaluators count such an item as an error.

    Example:
        >>> item = EvalItem([Message("user", "Capital of France?"), Message("assistant", "Paris.")])
        >>> item.query, item.response
        ('Capital of France?', 'Paris.')
    """

    conversation: list[Message]
    tools: list[Any] | None = None
    context: str | None = None
    expected_output: str | None = None
    expected_tool_calls: list[ExpectedToolCall] | None = None
    split_strategy: ConversationSplitter | None = None
    error: Exception | None = field(default=None, repr=False)

    @property
    def query(self) -> str:
        """The texts of the user messages on the query side, joined by spaces."""
        return _texts(self.split_messages()[0], "user")

    @property
    def response(self) -> str:
        """The texts of the assistant messages on the response side, joined by spaces."""
        return _texts(self.split_messages()[1], "assistant")

    @property
    def tool_calls(self) -> list[Content]:
        """The tool calls in the whole conversation, in order."""
        contents = (content for message in self.conversation for content in message.contents)
        return [content for content in contents if content.type == "function_call"]

    def split_messages(self, split: ConversationSplitter | None = None) -> tuple[list[Message], list[Message]]:
        """Return the query side and the response side.

        Args:
            split: A splitter to use instead of `split_strategy`.
        """
        return (split or self.split_strategy or ConversationSplit.LAST_TURN)(self.conversation)

    @staticmethod
    def per_turn_items(
        conversation: Sequence[Message], *, tools: list[Any] | None = None, context: str | None = None
    ) -> list[EvalItem]:
        """Return an item for each user message, with the conversation up to the next one.

        Args:
            conversation: The messages. Without a user message, there are no items.
            tools: The tools of the agent.
            context: Background information for checks.
        """
        messages = list(conversation)
        ends = [*_user_indexes(messages)[1:], len(messages)] if _user_indexes(messages) else []
        return [EvalItem(messages[:end], tools, context) for end in ends]


def _user_indexes(conversation: list[Message]) -> list[int]:
    return [index for index, message in enumerate(conversation) if message.role == "user"]


def _texts(messages: list[Message], role: str) -> str:
    return " ".join(message.text for message in messages if message.role == role and message.text).strip()
