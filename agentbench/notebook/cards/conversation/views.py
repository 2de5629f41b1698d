"""The notebook views of messages, responses and updates, and `transcript` for any list of messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from agentbench._display import Displayable
from agentbench._text.escape import esc
from agentbench._text.phrases import count_text
from agentbench.messages.message import Message
from agentbench.notebook.cards.conversation.display import conversation_html, conversation_lines
from agentbench.notebook.cards.conversation.model import Turn, pending_requests, turns_of
from agentbench.notebook.history.agent_turns import conversation_in_run
from agentbench.notebook.history.sources import read_runs
from agentbench.notebook.look.prose import Render, require_rendering

if TYPE_CHECKING:
    from agentbench.notebook.cards.conversation.approvals import Approvals
    from agentbench.notebook.forms.form import Form

Bundle = dict[str, Any]

LIMIT = 60


def transcript(
    conversation: Any,
    *,
    render: Render = "plain",
    limit: int = LIMIT,
    respond: Callable[[Message], object] | None = None,
) -> Transcript:
    """Return a view of a conversation for a cell: the text of each speaker, with tool calls and reasoning folded.

    Calls that wait for approval have the buttons Approve and Reject below the conversation.

    Args:
        conversation: Messages, or an object with `messages` (a response), or a session whose history is stored in its
            state; or a run of a workflow, its result or its stepper.
        render: Rendering of texts of models: `plain`, or `markdown` with a small, safe subset of Markdown. Texts of
            users are always plain.
        limit: Maximum number of turns, the latest ones.
        respond: Called with the message of all approvals after the last button, such as
            `lambda answer: agent.run(answer, session=session)`; its result is displayed below. Without it, pass
            `Transcript.answer` to the next run.

    Raises:
        TypeError: `conversation` has no messages.
        ValueError: `render` is none of these, or `limit` is below 1.

    Example:
        session = agent.create_session()
        await agent.run("How much rain fell in Bergen?", session=session)
        transcript(session, render="markdown")
    """
    require_rendering(render, limit)
    return Transcript(tuple(_messages_of(conversation)), render, limit, respond=respond)


@dataclass(frozen=True, repr=False)
class Transcript(Displayable):
    """A conversation that a cell displays as HTML and `print` as text; made by `transcript`.

    Attributes:
        messages: All messages, including those before the displayed turns.
        render: Rendering of texts of models.
        limit: Maximum number of displayed turns.
        facts: Facts, in one line below the turns.
        respond: Called with the message of all approvals.

    Example:
        talk = transcript(session)  # a cell displays it with its buttons
        await agent.run(talk.answer, session=session)
    """

    messages: tuple[Message, ...]
    render: Render = "plain"
    limit: int = LIMIT
    facts: Sequence[str] = ()
    respond: Callable[[Message], object] | None = None

    @property
    def text(self) -> str:
        """The conversation as plain text."""
        turns, above = self._latest_turns()
        lines = filter(None, [above, *conversation_lines(turns), self._fact_line])
        return "\n".join(lines) or "(no messages)"

    @property
    def html(self) -> str:
        """The conversation as HTML."""
        turns, above = self._latest_turns()
        facts = self._fact_line or ("" if turns else "(no messages)")
        return str(conversation_html(turns, above=above, facts=facts, render=self.render))

    @property
    def forms(self) -> tuple[Form, ...]:
        """A form with Approve and Reject for each call that waits for approval."""
        return self._approvals.forms

    @property
    def answer(self) -> Message:
        """The approvals as the message for the next run of the agent; `ValueError` if one is missing."""
        return self._approvals.answer

    @cached_property
    def _approvals(self) -> Approvals:
        from agentbench.notebook.cards.conversation.approvals import Approvals

        return Approvals(self)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Transcript({len(self.messages)} messages)"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Bundle:
        return {"text/plain": self.text, "text/html": self.html}

    @property
    def _ipython_display_(self) -> Callable[[], None] | None:
        """Display the buttons in separate outputs, so that a saved notebook contains the conversation."""
        return self._approvals.display if pending_requests(self.messages) else None

    def _latest_turns(self) -> tuple[list[Turn], str]:
        turns = turns_of(self.messages)
        hidden = len(turns) - self.limit
        return turns[-self.limit :], f"… {hidden:,} earlier" if hidden > 0 else ""

    @property
    def _fact_line(self) -> str:
        return esc(" · ".join(self.facts), into="line", limit=400)


def message_bundle(message: Any) -> Bundle:
    """Return the views of one message by media type."""
    return Transcript((message,))._repr_mimebundle_()


def response_bundle(response: Any) -> Bundle:
    """Return the views of a response by media type: its messages, then model, tokens and finish reason."""
    return Transcript(tuple(response.messages), facts=tuple(_response_facts(response)))._repr_mimebundle_()


def update_bundle(update: Any) -> Bundle:
    """Return the views of one streamed update by media type."""
    return message_bundle(Message(str(update.role or "assistant"), update.contents, author_name=update.author_name))


def content_bundle(content: Any) -> Bundle:
    """Return the views of one content by media type."""
    return message_bundle(Message(content.type.replace("_", " "), [content]))


def _response_facts(response: Any) -> Iterator[str]:
    if model := getattr(response, "model", None):
        yield f"model {model}"
    usage = response.usage_details or {}
    read, written = usage.get("input_token_count"), usage.get("output_token_count")
    if read is not None or written is not None:
        yield f"{read or 0:,} tokens in, {written or 0:,} out"
    if response.finish_reason and response.finish_reason != "stop":
        yield f"ended: {response.finish_reason}"
    if waiting := len(getattr(response, "user_input_requests", ())):
        buttons = ", see the buttons of transcript(response)" if pending_requests(response.messages) else ""
        yield f"waits for {count_text(waiting, 'answer')}{buttons}"


def _messages_of(conversation: Any) -> Iterable[Message]:
    if isinstance(conversation, Message):
        return [conversation]
    messages = getattr(conversation, "messages", None)
    state = getattr(conversation, "state", None)
    if messages is None and hasattr(conversation, "session_id") and isinstance(state, Mapping):
        # The messages of the history provider of a session.
        stored = (each.get("messages") for each in state.values() if isinstance(each, Mapping))
        messages = next((each for each in stored if isinstance(each, Sequence)), ())
    if messages is None:
        messages = conversation
    if (
        isinstance(messages, Sequence)
        and not isinstance(messages, str)
        and all(isinstance(m, Message) for m in messages)
    ):
        return messages
    with suppress(TypeError):
        if runs := read_runs(conversation):
            return [message for run in runs for message in conversation_in_run(run)]
    message = (
        f"transcript() cannot read a {type(conversation).__name__}. Expected messages, a response, a session whose "
        "history is stored in its state, or a run of a workflow."
    )
    raise TypeError(message)
