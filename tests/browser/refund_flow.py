"""The workflow in the README's picture: an agent drafts an answer to a customer, and a person approves it."""

from __future__ import annotations

from dataclasses import dataclass

from agentbench import (
    Agent,
    AgentExecutorResponse,
    Approval,
    Case,
    Default,
    Executor,
    ScriptedChatClient,
    WorkflowBuilder,
    WorkflowContext,
    executor,
    handler,
    response_handler,
)

DRAFT = "Hello Ada, the lamp arrived broken and you wrote within 30 days. We will refund EUR 129.00 this week."


@dataclass
class Answer:
    """The question to the person."""

    prompt: str
    draft: str


@executor
async def ticket(text: str, ctx: WorkflowContext[str]) -> None:
    await ctx.send_message(text)


@executor
async def order(text: str, ctx: WorkflowContext[str]) -> None:
    ctx.set_state("order", "1042, desk lamp, EUR 129.00")
    await ctx.send_message("Order 1042: desk lamp, EUR 129.00")


@executor
async def customer(text: str, ctx: WorkflowContext[str]) -> None:
    await ctx.send_message("Customer: Ada, since 2019, no earlier refunds")


@executor
async def policy(text: str, ctx: WorkflowContext[str]) -> None:
    await ctx.send_message("Policy: full refund within 30 days")


class Approve(Executor):
    """Asks a person before anything is sent; a rejected draft goes back to the writer."""

    @handler
    async def ask(self, draft: AgentExecutorResponse, ctx: WorkflowContext) -> None:
        ctx.set_state("draft", draft.agent_response.text)
        await ctx.request_info(Answer("Send this answer and refund EUR 129.00?", draft.agent_response.text), Approval)

    @response_handler
    async def decide(self, question: Answer, answer: Approval, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(question.draft if answer else f"Revise: {answer.reason}")


@executor
async def send(text: str, ctx: WorkflowContext[str, str]) -> None:
    await ctx.yield_output(text)


def rejected(text: str) -> bool:
    """Whether the draft goes back to the writer."""
    return text.startswith("Revise: ")


writer = Agent(ScriptedChatClient([DRAFT]), name="writer", instructions="Answer the customer in two sentences.")
approve = Approve(id="approve")
facts = [order, customer, policy]
workflow = (
    WorkflowBuilder(start_executor=ticket, name="refund")
    .add_fan_out_edges(ticket, facts)
    .add_fan_in_edges(facts, writer)
    .add_chain([writer, approve])
    .add_switch_case_edge_group(approve, [Case(rejected, writer), Default(send)])
    .build()
)
