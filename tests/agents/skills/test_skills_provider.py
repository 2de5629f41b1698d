"""Skills in the runs of an agent."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from agentbench import (
    Agent,
    CachingSkillsSource,
    Call,
    FileSkillsSource,
    InlineSkill,
    InMemorySkillsSource,
    ScriptedChatClient,
    Skill,
    SkillsProvider,
    SkillsSource,
    subprocess_script_runner,
)
from tests.agents.skills.test_code_skills import Counting
from tests.agents.skills.test_skill_files import write
from tests.parts.errors import raises
from tests.parts.nightly import nightly


def menus() -> InlineSkill:
    skill = InlineSkill(name="menus", description="Plans <menus>.", instructions="Begin with the soup.")

    @skill.resource
    def user(**kwargs: Any) -> str:
        return f"for {kwargs.get('user')}"

    @skill.resource
    def broken() -> str:
        raise ValueError("the secret key is 123")

    @skill.script
    def total(prices: list[float]) -> float:
        return sum(prices)

    return skill


async def results(provider: SkillsProvider, *calls: Call, **run: Any) -> list[str]:
    """Return what a model gets for its calls."""
    client = ScriptedChatClient([list(calls), "done"])
    await Agent(client, context_providers=[provider]).run("go", **run)
    return [str(one.exception or one.result) for m in client.calls[-1].messages[2:] for one in m.contents]


async def offered(provider: SkillsProvider) -> tuple[str, list[str]]:
    client = ScriptedChatClient("done")
    await Agent(client, context_providers=[provider]).run("go")
    options = client.calls[0].options
    return str(options.get("instructions") or ""), [tool.name for tool in options.get("tools") or ()]


async def test_what_the_model_sees_and_loads(caplog: pytest.LogCaptureFixture):
    provider = SkillsProvider([menus(), InlineSkill(name="art", description="Paints.", instructions="Paint.")])
    instructions, tools = await offered(provider)
    assert tools == ["load_skill", "read_skill_resource", "run_skill_script"]
    assert instructions.index("<name>art</name>") < instructions.index("<name>menus</name>")
    assert "Plans &lt;menus&gt;." in instructions
    assert "soup" not in instructions
    got = await results(
        provider,
        Call("load_skill", {"skill_name": " Menus "}),
        Call("read_skill_resource", {"skill_name": "menus", "resource_name": "USER"}),
        Call("run_skill_script", {"skill_name": "menus", "script_name": "total", "args": {"prices": [1, 2.5]}}),
        Call("read_skill_resource", {"skill_name": "menus", "resource_name": "broken"}),
        Call("run_skill_script", {"skill_name": "menus", "script_name": "total", "args": ["1"]}),
        Call("load_skill", {"skill_name": ""}),
        Call("read_skill_resource", {"skill_name": "menus", "resource_name": "../../etc/passwd"}),
        Call("run_skill_script", {"skill_name": "art", "script_name": "x"}),
        function_invocation_kwargs={"user": "Ada"},
    )
    assert "Begin with the soup." in got[0]
    assert got[1:3] == ["for Ada", "3.5"]
    assert got[3:5] == ["Error: Reading 'broken' failed.", "Error: Running 'total' failed."]
    assert got[5] == "Error: There is no skill ''. There are: art, menus."
    assert got[6] == "Error: There is no resource '../../etc/passwd'. There are: broken, user."
    assert got[7] == "Error: There is no script 'x'. There are: none."
    assert "123" not in "".join(record.getMessage() for record in caplog.records)


async def test_tools_are_there_only_for_what_there_is():
    plain = InlineSkill(name="art", description="Paints.", instructions="Paint.")
    instructions, tools = await offered(SkillsProvider(plain))
    assert tools == ["load_skill"]
    assert "run_skill_script" not in instructions
    assert await offered(SkillsProvider([])) == ("", [])


async def test_skills_are_loaded_once_or_each_time_and_again_after_a_failure():
    source = Counting(menus(), failures=1)
    provider = SkillsProvider(source)
    with raises(OSError, "not now"):
        await offered(provider)
    await offered(provider)
    await offered(provider)
    assert source.asked == 2
    source = Counting(menus())
    provider = SkillsProvider(source, disable_caching=True)
    await offered(provider)
    source.skills = []
    assert await offered(provider) == ("", [])


@pytest.mark.parametrize("template", ["no skills", "{skills} {other}", "{skills} {", "{skills} }", "{} {skills}"])
def test_bad_templates(template: str):
    with raises(ValueError):
        SkillsProvider(menus(), instruction_template=template)


async def test_templates_of_your_own():
    instructions, _ = await offered(
        SkillsProvider(menus(), instruction_template="{{x}}{skills}{resource_instructions}{runner_instructions}")
    )
    assert instructions.startswith("{x}  <skill>")
    with raises(ValueError, "resource_instructions"):
        await offered(SkillsProvider(menus(), instruction_template="{skills}{runner_instructions}"))


def test_a_path_or_something_else_is_no_source(tmp_path: Path):
    for path in ("skills", tmp_path):
        with raises(TypeError, "from_paths"):
            SkillsProvider(path)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        SkillsProvider([3])  # type: ignore[list-item]
    assert SkillsProvider(menus()).source_id == SkillsProvider.DEFAULT_SOURCE_ID == "agent_skills"


@pytest.mark.parametrize("approved", [True, False])
async def test_a_person_agrees_to_scripts(tmp_path: Path, approved: bool):
    write(tmp_path / "skills" / "a", scripts__go_dot_py="open('ran', 'w').write('yes'); print('it ran')")
    provider = SkillsProvider.from_paths(
        tmp_path / "skills", script_runner=subprocess_script_runner(), require_script_approval=True
    )
    client = ScriptedChatClient(
        [Call("run_skill_script", {"skill_name": "a", "script_name": "scripts/go.py", "args": []}), "done"]
    )
    agent = Agent(client, context_providers=[provider])
    session = agent.create_session()
    response = await agent.run("go", session=session)
    [request] = response.user_input_requests
    assert not (tmp_path / "skills" / "a" / "ran").exists()
    response = await agent.run(request.to_function_approval_response(approved), session=session)
    assert (tmp_path / "skills" / "a" / "ran").exists() is approved


async def script(tmp_path: Path, code: str, args: Any = None, **limits: Any) -> str:
    write(tmp_path / "a", scripts__s_dot_py=code)
    [skill] = await FileSkillsSource(tmp_path, script_runner=subprocess_script_runner(**limits)).get_skills()
    result: str = await skill.scripts[0].run(skill, args)
    return result


async def test_a_script_runs_in_its_folder_with_its_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    code = "import os, sys; print(os.getcwd()); print(sys.argv[1:]); print(dict(os.environ)); print(sys.stdin.read())"
    text = await script(tmp_path, code, ["a b", "$(id)", "; ls"], env={"COLOR": "red"})
    lines = text.splitlines()
    assert lines[:2] == [str(tmp_path / "a"), "['a b', '$(id)', '; ls']"]
    assert "'COLOR': 'red'" in lines[2]
    assert "sk-secret" not in text
    assert "['--depth', '3']" in await script(tmp_path, "import sys; print(sys.argv[1:])", {"depth": 3})


async def test_arguments_may_be_parsed_in_another_way(tmp_path: Path):
    code, args = "import sys; print(sys.argv[1:])", {"depth": 3}
    text = await script(tmp_path, code, args, argument_parser=lambda args: [f"{k}={v}" for k, v in args.items()])
    assert "['depth=3']" in text


async def test_a_script_that_fails_says_how(tmp_path: Path):
    text = await script(tmp_path, "print('so far'); raise ValueError('no bread')")
    assert text.startswith("so far\n\nThe script failed with exit code 1.\n")
    assert text.endswith("ValueError: no bread")


@pytest.mark.skipif(sys.platform == "win32", reason="sh is a program of POSIX")
@pytest.mark.parametrize(
    ("name", "code", "output"),
    [
        ("scripts/a.sh", "echo hello", "hello\n"),
        ("scripts/a.sh", "#!/bin/bash\necho $BASH_VERSION | grep -c .", "1\n"),
        ("scripts/a", "#!/usr/bin/env -S sh -e\nfalse\necho not here", "The script failed with exit code 1."),
        ("scripts/a.py", "#!/usr/bin/env python\nprint('hello')", "hello\n"),
        ("scripts/a.rb", "#!/usr/bin/env no-such-program", "needs 'no-such-program', which is not installed"),
    ],
)
async def test_the_interpreter_of_a_script_is_named_by_its_first_line_or_its_ending(
    tmp_path: Path, name: str, code: str, output: str
):
    write(tmp_path / "a", **{name.replace("/", "__").replace(".", "_dot_"): code})
    [skill] = await FileSkillsSource(tmp_path, script_runner=subprocess_script_runner()).get_skills()
    assert output in await skill.scripts[0].run(skill, [])


async def test_a_script_without_an_interpreter_is_refused_by_name(tmp_path: Path):
    write(tmp_path / "a", scripts__s_dot_pl="print 1")
    source = FileSkillsSource(tmp_path, script_runner=subprocess_script_runner(), script_extensions=[".pl"])
    [skill] = await source.get_skills()
    text = await skill.scripts[0].run(skill, [])
    assert "'scripts/s.pl' was not run" in text
    assert ".py, .sh" in text


async def test_arguments_written_as_one_text_are_read_as_a_command_line(tmp_path: Path):
    assert "['--depth', 'a b']" in await script(tmp_path, "import sys; print(sys.argv[1:])", "--depth 'a b'")


async def test_a_model_can_read_a_script(tmp_path: Path):
    write(tmp_path / "a", scripts__s_dot_py="print(1)", notes_dot_md="n")
    provider = SkillsProvider.from_paths(tmp_path)
    client = ScriptedChatClient(
        [Call("read_skill_resource", {"skill_name": "a", "resource_name": "./scripts/s.py"}), "done"]
    )
    response = await Agent(client, context_providers=[provider]).run("go")
    assert [one.result for message in response.messages for one in message.contents if one.result] == ["print(1)"]


async def test_skills_that_are_invalidated_while_they_load_are_loaded_again():
    begin, finish = asyncio.Event(), asyncio.Event()

    class Slow(SkillsSource):
        loads = 0

        async def get_skills(self) -> list[Skill]:
            self.loads += 1
            begin.set()
            await finish.wait()
            return []

    slow = Slow()
    source = CachingSkillsSource(slow)
    first = asyncio.ensure_future(source.get_skills())
    await begin.wait()
    source.invalidate()
    finish.set()
    await first
    await source.get_skills()
    assert slow.loads == 2


async def test_long_outputs_are_cut(tmp_path: Path):
    text = await script(tmp_path, "print('x' * 5_000_000, end='')", max_output=100)
    assert text == "x" * 100 + "… (4,999,900 more bytes)"


CHILD = """
import subprocess, sys, time
child = "import time; time.sleep(1.5); open('survived', 'w')"
subprocess.Popen([sys.executable, '-c', child], start_new_session=DETACHED)
print('started', flush=True)
open('started', 'w')
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="groups of processes are those of POSIX")
@pytest.mark.parametrize("how", ["timeout", nightly("cancelled"), nightly("detached")])
async def test_a_script_that_is_stopped_leaves_nothing_running(tmp_path: Path, how: str):
    pytest.importorskip("yaml")
    if how == "detached" and sys.platform != "linux":
        pytest.skip("only Linux tells which processes a script has started that left its group")
    begun, code = time.monotonic(), CHILD.replace("DETACHED", str(how == "detached"))
    if how != "cancelled":
        assert await script(tmp_path, code, timeout=0.7) == "Error: The script was stopped after 0.7 seconds."
    else:
        running = asyncio.ensure_future(script(tmp_path, code))
        while not (tmp_path / "a" / "started").exists():  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.02)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    await asyncio.sleep(max(0, begun + 2.5 - time.monotonic()))
    assert not (tmp_path / "a" / "survived").exists()


async def test_a_source_in_memory():
    instructions, _ = await offered(SkillsProvider(InMemorySkillsSource([menus()]), source_id="mine"))
    assert "menus" in instructions
