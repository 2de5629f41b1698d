"""Response types for people: an approval, or text."""

from __future__ import annotations

from dataclasses import dataclass

from agentbench._secrets import masked_fields


@dataclass(frozen=True)
class Approval:
    """A person's yes or no: the response type of a request that notebooks display with Approve and Reject buttons.

    Attributes:
        approved: Whether the proposal is approved. This is also the truth value of an `Approval` in conditions.
        reason: The reason, in the person's words.
        edited: The value to use instead of the proposal, if the person changed it; otherwise `None`.

    Example:
        >>> class Publish(Executor):
        ...     @handler
        ...     async def draft(self, draft: str, ctx: WorkflowContext) -> None:
        ...         await ctx.request_info(draft, Approval)
        ...
        ...     @response_handler
        ...     async def decision(self, draft: str, decision: Approval, ctx: WorkflowContext[Never, str]) -> None:
        ...         await ctx.yield_output(draft if decision else decision.reason)
    """

    approved: bool
    reason: str = ""
    edited: object = None

    __repr__ = masked_fields

    def __bool__(self) -> bool:
        return self.approved


@dataclass(frozen=True, kw_only=True)
class TextAnswer:
    """The texts of a form in which a person answers with messages: `_text_answer_` of a request or response type.

    Attributes:
        prompt: The question; by default the agent's last message.
        label: The heading of the text box.
        send: The button that sends the text.
        without: The label of the button that answers without text, with the response type's empty value; empty for
            none.
    """

    prompt: str = ""
    label: str = "Your message"
    send: str = "Send"
    without: str = ""

    __repr__ = masked_fields
