"""A runner for the scripts of skills: each in a process of its own, within limits."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentbench.agents.skills.file_skills import FileSkill, FileSkillScript
    from agentbench.agents.skills.skill import SkillScriptRunner

_CHUNK = 65_536


def subprocess_script_runner(
    *,
    timeout: float = 60,
    python: str | None = None,
    env: Mapping[str, str] | None = None,
    max_output: int = 100_000,
) -> SkillScriptRunner:
    """Return a runner that runs Python scripts in processes of their own.

    A script runs in the folder of its skill, without a shell, without input, and with a nearly empty environment: it
    does not see your keys. It is no sandbox: a script can read and write what you can. When its time is over, or the
    run of the agent is cancelled, the script is killed with all processes that it has started.

    Args:
        timeout: Seconds that a script may take.
        python: The interpreter; by default this one.
        env: Variables of its environment, besides PATH and those of encodings.
        max_output: Bytes of its output that are returned; the rest is cut off, with a mark.

    Returns:
        A runner that returns what the script printed; with the exit code and its errors if it failed.

    Example:
        source = FileSkillsSource("skills", script_runner=subprocess_script_runner(timeout=10))
    """
    variables = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    variables |= {"LANG": "C.UTF-8", "PYTHONIOENCODING": "utf-8", **(env or {})}

    async def run(skill: FileSkill, script: FileSkillScript, args: Any = None) -> str:
        process = await asyncio.create_subprocess_exec(
            python or sys.executable,
            script.full_path,
            *_as_words(args),
            cwd=skill.path,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            outputs = asyncio.gather(_read(process.stdout, max_output), _read(process.stderr, max_output))
            output, errors = await asyncio.wait_for(outputs, timeout)
            code = await asyncio.wait_for(process.wait(), timeout)
        except asyncio.TimeoutError:
            return f"Error: The script was stopped after {timeout:g} seconds."
        finally:
            _kill(process)
            await process.wait()
        return output if code == 0 else f"{output}\nThe script failed with exit code {code}.\n{errors}".strip()

    return run


def _as_words(args: Any) -> list[str]:
    if isinstance(args, Mapping):
        return [word for name, value in args.items() for word in (f"--{name}", str(value))]
    return [str(word) for word in args or ()]


async def _read(stream: Any, limit: int) -> str:
    """Return the beginning of an output, and let the rest go."""
    data, size = b"", 0
    while chunk := await stream.read(_CHUNK):
        data += chunk[: limit - len(data)]
        size += len(chunk)
    text = data.decode("utf-8", "replace")
    return text if size <= limit else f"{text}… ({size - limit:,} more bytes)"


def _kill(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        if sys.platform == "win32":
            process.kill()
        else:  # the script led a group of its own, in which its children are; it may itself have ended
            os.killpg(process.pid, signal.SIGKILL)
