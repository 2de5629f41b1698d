import operator
from typing import Annotated

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from pydantic import BaseModel
from typing_extensions import TypedDict


class Joke(BaseModel):
    joke: str
    score: int = 0


class OverallState(TypedDict):
    topic: str
    subjects: list
    jokes: Annotated[list, operator.add]
    best_selected_joke: str


class JokeState(TypedDict):
    subject: str


def generate_topics(state: OverallState):
    return {"subjects": ["lions", "elephants", "penguins"]}


def generate_joke(state: JokeState):
    return {"jokes": [Joke(joke=f"A joke about {state['subject']}", score=len(state["subject"]))]}


def continue_to_jokes(state: OverallState):
    return [Send("generate_joke", {"subject": s}) for s in state["subjects"]]


def best_joke(state: OverallState):
    best = max(state["jokes"], key=lambda joke: joke.score)
    return {"best_selected_joke": best.joke}


graph = StateGraph(OverallState)
graph.add_node("generate_topics", generate_topics)
graph.add_node("generate_joke", generate_joke)
graph.add_node("best_joke", best_joke)
graph.add_edge(START, "generate_topics")
graph.add_conditional_edges("generate_topics", continue_to_jokes, ["generate_joke"])
graph.add_edge("generate_joke", "best_joke")
graph.add_edge("best_joke", END)
app = graph.compile()
for s in app.stream({"topic": "animals"}, {"max_concurrency": 1}):
    print(s)
result = app.invoke({"topic": "animals"})
print(list(result), result["best_selected_joke"], [j.joke for j in result["jokes"]])
for s in app.stream({"topic": "animals"}, stream_mode="values"):
    print(sorted(s))
