import asyncio
import operator
from typing import Annotated

from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict


class PlanExecute(TypedDict):
    input: str
    plan: list[str]
    past_steps: Annotated[list[tuple], operator.add]
    response: str


async def plan_step(state: PlanExecute):
    return {"plan": [f"look up {word}" for word in state["input"].split()]}


async def execute_step(state: PlanExecute):
    task = state["plan"][0]
    return {"past_steps": [(task, f"done: {task}")]}


async def replan_step(state: PlanExecute):
    rest = state["plan"][1:]
    if rest:
        return {"plan": rest}
    return {"response": "; ".join(text for _, text in state["past_steps"])}


def should_end(state: PlanExecute):
    if "response" in state and state["response"]:
        return END
    return "agent"


workflow = StateGraph(PlanExecute)
workflow.add_node("planner", plan_step)
workflow.add_node("agent", execute_step)
workflow.add_node("replan", replan_step)
workflow.add_edge(START, "planner")
workflow.add_edge("planner", "agent")
workflow.add_edge("agent", "replan")
workflow.add_conditional_edges("replan", should_end, ["agent", END])
app = workflow.compile()


async def main():
    async for event in app.astream({"input": "owls cats dogs"}, config={"recursion_limit": 50}):
        for k, v in event.items():
            if k != "__end__":
                print(k, v)
    print(await app.ainvoke({"input": "owls"}))
    try:
        await app.ainvoke({"input": "a b c d e f g h"}, {"recursion_limit": 5})
    except Exception as error:
        print(type(error).__name__)


asyncio.run(main())
