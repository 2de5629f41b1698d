"""A client that repeats what the user wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentbench.agents.clients.scripted.answering import NO_USER_MESSAGE, AnsweringChatClient, last_user_text
from agentbench.agents.clients.scripted.script import Chunk, Reply, usage_of_words
from agentbench.messages.message import Message

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from agentbench.agents.clients.scripted.answering import ClientLayers


class EchoChatClient(AnsweringChatClient):
    """Answers with a prefix and the text of the last user message; `(no user message)` if there is none.

    Usage counts the words of that message and of the answer, so a long history costs nothing.

    Args:
        prefix: The start of every answer.
        model: The name of the model in its answers.
        chunk: In what pieces it streams: `word` (with the space behind it), `char`, or `whole`.
        **layers: As for every client: middleware, configuration of the tool loop, compaction.

    Raises:
        ValueError: `chunk` is none of these.

    Example:
        ```python
        from agentbench import EchoChatClient

        response = await EchoChatClient().get_response("Hello")
        print(response.text)  # Echo: Hello
        ```
    """

    def __init__(
        self, prefix: str = "Echo: ", *, model: str = "echo", chunk: Chunk = "word", **layers: Unpack[ClientLayers]
    ) -> None:
        super().__init__(model=model, chunk=chunk, **layers)
        self.prefix = prefix

    async def _reply(self, messages: Sequence[Message], options: Mapping[str, Any], **call: Any) -> Reply:
        prompt = last_user_text(messages)
        text = NO_USER_MESSAGE if prompt is None else f"{self.prefix}{prompt}"
        usage = usage_of_words(len((prompt or "").split()), len(text.split()))
        return self._read({"text": text, "usage": usage}, messages, options)

    def __repr__(self) -> str:
        return f"EchoChatClient({self.prefix!r}, model={self.model!r}, chunk={self.chunk!r})"
