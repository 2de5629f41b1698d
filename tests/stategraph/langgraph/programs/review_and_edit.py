import uuid
from typing import Literal, TypedDict

from langgraph.checkpoint.memory import MemorySaver
from langgraph.constants import END, START
from langgraph.graph import StateGraph
from langgraph.types import Command, interrupt


class State(TypedDict):
    llm_output: str
    decision: str


def generate_llm_output(state: State) -> State:
    return {"llm_output": "This is the generated output."}


def human_approval(state: State) -> Command[Literal["approved_path", "rejected_path"]]:
    decision = interrupt({"question": "Do you approve?", "llm_output": state["llm_output"]})
    if decision["type"] == "accept":
        return Command(goto="approved_path", update={"decision": "approved"})
    if decision["type"] == "edit":
        return Command(goto="approved_path", update={"decision": "edited", "llm_output": decision["text"]})
    return Command(goto="rejected_path", update={"decision": "rejected"})


def approved_node(state: State) -> State:
    print("Approved path taken.")
    return state


def rejected_node(state: State) -> State:
    print("Rejected path taken.")
    return state


builder = StateGraph(State)
builder.add_node("generate_llm_output", generate_llm_output)
builder.add_node("human_approval", human_approval)
builder.add_node("approved_path", approved_node)
builder.add_node("rejected_path", rejected_node)
builder.set_entry_point("generate_llm_output")
builder.add_edge("generate_llm_output", "human_approval")
builder.add_edge("approved_path", END)
builder.add_edge("rejected_path", END)
graph = builder.compile(checkpointer=MemorySaver())
for answer in ({"type": "accept"}, {"type": "edit", "text": "mine"}, {"type": "no"}):
    config = {"configurable": {"thread_id": uuid.uuid4()}}
    result = graph.invoke({}, config=config)
    print(result["__interrupt__"][0].value, len(result["__interrupt__"]))
    print(
        graph.get_state(config).next,
        graph.get_state(config).tasks[0].name,
        graph.get_state(config).tasks[0].interrupts[0].value["question"],
    )
    print(graph.invoke(Command(resume=answer), config=config))
# wrong input loop


class Form(TypedDict):
    age: int


def get_valid_age(state):
    prompt = "Please enter your age"
    while True:
        user_input = interrupt(prompt)
        try:
            age = int(user_input)
            if age < 0:
                raise ValueError("Age must be non-negative.")
            break
        except (ValueError, TypeError):
            prompt = f"'{user_input}' is not valid."
    return {"age": age}


builder = StateGraph(Form)
builder.add_node("age", get_valid_age)
builder.add_edge(START, "age")
graph = builder.compile(checkpointer=MemorySaver())
config = {"configurable": {"thread_id": 1}}
result = graph.invoke({}, config)
for answer in ("old", -5, "25"):
    print([i.value for i in result["__interrupt__"]])
    result = graph.invoke(Command(resume=answer), config)
print(result)
