"""What a first turn of an agent loads: nothing that it can do without, and never pydantic, which takes longest."""

import subprocess
import sys

SCRIPT = """
import asyncio, sys
before = {name for name in NAMES if name in sys.modules}
from typing import Annotated
from agentbench import Agent, Content, WorkflowBuilder, WorkflowContext
from agentbench.testing import ScriptedChatClient

def weather(city: Annotated[str, "where"], days: int = 1, *, in_feet: bool = False) -> str:
    "Tell the weather."
    return f"Fog in {city} for {days} days."

call = Content.from_function_call("c1", "weather", arguments='{"city": "Oslo", "days": 3}')
agent = Agent(ScriptedChatClient([[call], "Fog."]), name="guide", tools=[weather])
RUN
print(*sorted(name for name in NAMES if name in sys.modules and name not in before))
"""
ALONE = """
response = asyncio.run(agent.run("And Oslo?"))
assert response.text == "Fog.", response
assert response.messages[1].contents[0].result == "Fog in Oslo for 3 days.", response
"""
IN_WORKFLOW = """
(response,) = asyncio.run(WorkflowBuilder(agent).build().run("And Oslo?")).get_outputs()
assert response.text == "Fog.", response
"""

NOT_NEEDED = [
    "agentbench.agents.harness.loop_conditions",
    "agentbench.agents.middleware.bundle",
    "agentbench.agents.middleware.judge",
    "agentbench.agents.middleware.loop",
    "agentbench.agents.sessions.injection",
    "agentbench.agents.tools.signature_model",
    "agentbench.notebook",
    "agentbench.stategraph",
    "decimal",
    "fractions",
    "ipaddress",
    "opentelemetry",
    "pydantic",
    "typing_extensions",
    "urllib.parse",
    "uuid",
    "zoneinfo",
]


def loaded_by(script: str) -> list[str]:
    text = f"NAMES = {NOT_NEEDED!r}\n{SCRIPT.replace('RUN', script)}"
    return subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True).stdout.split()


def test_a_first_turn_with_a_tool_call_loads_nothing_that_it_can_do_without() -> None:
    assert loaded_by(ALONE) == []


def test_nor_does_a_first_workflow_of_an_agent() -> None:
    assert loaded_by(IN_WORKFLOW) == []
