import asyncio

from langgraph.checkpoint.memory import MemorySaver
from langgraph.func import entrypoint, task
from langgraph.types import Command, interrupt

attempts = 0
slow_calls = 0


@task
def slow(n: int) -> int:
    global slow_calls
    slow_calls += 1
    return n + 1


@task
def fetch() -> str:
    global attempts
    attempts += 1
    if attempts < 3:
        raise ValueError(f"attempt {attempts}")
    return "page"


@entrypoint(checkpointer=MemorySaver())
def job(inputs: dict) -> dict:
    n = slow(inputs["n"]).result()
    return {"n": n, "page": fetch().result()}


config = {"configurable": {"thread_id": "1"}}
for given in ({"n": 1}, None, None):
    try:
        print(job.invoke(given, config))
    except ValueError as error:
        print("failed:", error, job.get_state(config).next)
print(slow_calls, attempts)


@task
async def ask(question: str) -> str:
    return f"{question} {interrupt(question)}"


@entrypoint(checkpointer=MemorySaver())
async def survey(questions: list[str]) -> list[str]:
    answers = []
    for question in questions:
        answers.append(await ask(question))
    return answers


async def main():
    given = ["name?", "age?"]
    for answer in (None, "Ann", "7"):
        result = await survey.ainvoke(given if answer is None else Command(resume=answer), config)
        print([item.value for item in result["__interrupt__"]] if isinstance(result, dict) else result)


asyncio.run(main())


@task
def double(n: int) -> int:
    return 2 * n


@task
def quadruple(n: int) -> int:
    return double(double(n).result()).result()


@entrypoint()
def nested(n: int) -> int:
    return quadruple(n).result()


print(nested.invoke(3))
for item in nested.stream(3):
    print(item)
