from typing import TypedDict

from langgraph.graph import END, START, StateGraph


class Input(TypedDict):
    question: str


class Output(TypedDict):
    answer: str


class Overall(Input, Output):
    pass


class Private(TypedDict):
    notes: str


def think(state: Input) -> Private:
    return {"notes": f"{state['question']} seen with {sorted(state)}"}


def answer(state: Private) -> Output:
    return {"answer": f"{state['notes']}; {sorted(state)}"}


def check(state: Overall):
    return {"answer": f"{state['answer']}; {sorted(state)}"}


graph = StateGraph(Overall, input_schema=Input, output_schema=Output)
graph.add_node("think", think)
graph.add_node("answer", answer)
graph.add_node("check", check)
graph.add_edge(START, "think")
graph.add_edge("think", "answer")
graph.add_edge("answer", "check")
graph.add_edge("check", END)
app = graph.compile()
print(app.invoke({"question": "why?"}))
print(app.invoke({"question": "why?", "answer": "ignored"}))
