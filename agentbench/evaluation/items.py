"""What is evaluated: a conversation, cut into query and response, with what was expected of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from agentbench.messages.content.content import Content
from agentbench.messages.message import Message

#: Cuts a conversation into the query side and the response side.
ConversationSplitter: TypeAlias = Callable[[list[Message]], tuple[list[Message], list[Message]]]


class ConversationSplit(StrEnum):
    """Where a conversation is cut into query and response; each member is a `ConversationSplitter`.

    Attributes:
        LAST_TURN: After the last message of a user: is this answer good?
        FULL: After the first one: was the whole conversation good?

    Example:
        >>> asked, answered = ConversationSplit.LAST_TURN([Message("user", "2 + 2?"), Message("assistant", "4")])
        >>> answered[0].text
        '4'
    """

    LAST_TURN = "last_turn"
    FULL = "full"

    def __call__(self, conversation: list[Message]) -> tuple[list[Message], list[Message]]:
        """Return the query side and the response side; without a user's message all is response."""
        turns = _user_indexes(conversation)
        cut = 0 if not turns else 1 + (turns[-1] if self is ConversationSplit.LAST_TURN else turns[0])
        return conversation[:cut], conversation[cut:]


@dataclass
class ExpectedToolCall:
    """A tool that should be called, by name and maybe with these arguments among others.

    Args:
        name: Name of the tool.
        arguments: Arguments that the call must have; more are fine. With `None` the arguments do not matter.

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
        conversation: All messages, with the calls of tools and their results.
        tools: Tools that the agent had.
        context: Background that checks may need, such as the documents that the answer must rest on.
        expected_output: The right answer.
        expected_tool_calls: Tools that should be called.
        split_strategy: Where query and response are cut; by default after the last message of a user.
        error: Why there is no response; evaluators count such an item as errored.

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
        """Texts of the user's messages on the query side, joined by spaces."""
        return _texts(self.split_messages()[0], "user")

    @property
    def response(self) -> str:
        """Texts of the assistant's messages on the response side, joined by spaces."""
        return _texts(self.split_messages()[1], "assistant")

    @property
    def tool_calls(self) -> list[Content]:
        """Calls of tools in the whole conversation, in order."""
        contents = (content for message in self.conversation for content in message.contents)
        return [content for content in contents if content.type == "function_call"]

    def split_messages(self, split: ConversationSplitter | None = None) -> tuple[list[Message], list[Message]]:
        """Return the query side and the response side.

        Args:
            split: Where to cut, instead of `split_strategy`.
        """
        return (split or self.split_strategy or ConversationSplit.LAST_TURN)(self.conversation)

    @staticmethod
    def per_turn_items(
        conversation: Sequence[Message], *, tools: list[Any] | None = None, context: str | None = None
    ) -> list[EvalItem]:
        """Return an item for each message of the user, which holds the conversation up to the next one.

        Args:
            conversation: The messages; without one of a user there are no items.
            tools: Tools that the agent had.
            context: Background for the checks.
        """
        messages = list(conversation)
        ends = [*_user_indexes(messages)[1:], len(messages)] if _user_indexes(messages) else []
        return [EvalItem(messages[:end], tools, context) for end in ends]


def _user_indexes(conversation: list[Message]) -> list[int]:
    return [index for index, message in enumerate(conversation) if message.role == "user"]


def _texts(messages: list[Message], role: str) -> str:
    return " ".join(message.text for message in messages if message.role == role and message.text).strip()
