import operator
from functools import reduce

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.types import Command, StreamWriter, interrupt

calls = []


@task
def write(topic: str) -> str:
    calls.append(topic)
    return f"about {topic}"


@task(name="measure")
def length(text: str) -> int:
    return len(text)


@entrypoint(checkpointer=InMemorySaver())
def essay(topic: str, *, writer: StreamWriter) -> dict:
    writer("begins")
    text = write(topic).result()
    approved = interrupt({"text": text, "question": "publish?"})
    return {"text": text, "approved": approved, "length": length(text).result()}


def show(item):
    mode, item = item
    if "__interrupt__" in item:
        item = [question.value for question in item["__interrupt__"]]
    print(mode, item)


config = {"configurable": {"thread_id": "1"}}
for item in essay.stream("owls", config, stream_mode=["updates", "custom"]):
    show(item)
print(essay.get_state(config).next)
for item in essay.stream(Command(resume=True), config, stream_mode=["updates", "custom"]):
    show(item)
print(calls, essay.get_state(config).next)
result = essay.invoke("cats", config)
print([question.value for question in result["__interrupt__"]])
print(essay.invoke(Command(resume="later"), config))
print(essay.get_state(config).values)


@entrypoint(checkpointer=InMemorySaver())
def total(n: int, *, previous: int | None = None) -> entrypoint.final[int, int]:
    previous = previous or 0
    return entrypoint.final(value=previous, save=previous + n)


print([total.invoke(n, config) for n in (1, 2, 3)])


@entrypoint(checkpointer=InMemorySaver())
def products(numbers: list[int], previous: list[int] | None = None) -> list[int]:
    futures = [length("x" * n) for n in numbers]
    return (previous or []) + [reduce(operator.mul, [future.result() for future in futures], 1)]


print(products.invoke([2, 3], config), products.invoke([4], config))
