"""A runner for the scripts of skills: each runs in a separate process with limits."""

from __future__ import annotations

import asyncio
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final

from agentbench._extras import NO_PROCESSES, not_in_browser
from agentbench._limits import require_limit, require_seconds
from agentbench._workers import run_in_thread

if TYPE_CHECKING:
    from agentbench.agents.skills.file_skills import FileSkill, FileSkillScript
    from agentbench.agents.skills.skill import SkillScriptArgumentParser, SkillScriptRunner

_CHUNK: Final = 65_536
_REAPED_WITHIN: Final = 150  # checks, 3 seconds
_MARK: Final = "AGENTBENCH_SCRIPT_RUN"  # an environment variable that marks the processes of a run
_INTERPRETERS: Final = {".py": "python", ".sh": "sh", ".bash": "bash", ".js": "node", ".mjs": "node", ".cjs": "node"}

SCRIPT_ENDINGS: Final = tuple(_INTERPRETERS)
"""Endings of files that are scripts even without a `#!` line."""


def subprocess_script_runner(
    *,
    timeout: float = 60,
    python: str | None = None,
    env: Mapping[str, str] | None = None,
    max_output: int = 100_000,
    argument_parser: SkillScriptArgumentParser | None = None,
) -> SkillScriptRunner:
    """Return a runner that runs each script in a separate process.

    The `#!` line of a script names its interpreter; without such a line, the file ending decides: `.py`, `.sh`,
    `.bash`, `.js`, `.mjs` or `.cjs`. A script with neither is not run.

    A script runs in the folder of its skill, without a shell, without input, and with a nearly empty environment, so
    it does not see your keys. This is not a sandbox: a script can read and write everything that you can. When the
    script ends, times out, or the run of the agent is cancelled, all processes that it started are killed. On Linux
    this includes processes that left its process group (`setsid`, daemons), unless they also cleared their environment.
    On other systems, processes that left the group survive.

    Args:
        timeout: The maximum seconds for a script.
        python: The interpreter of Python scripts; by default the current one.
        env: Environment variables, in addition to PATH and the variables for encodings.
        max_output: The maximum bytes of output to return; longer output is cut off and marked. 0 returns none.
        argument_parser: Converts the arguments of the model to the words of the command line. By default, `{"name": 1}`
            becomes `--name 1`, and a text is split as in a shell.

    Returns:
        A runner that returns the output of the script, and the exit code and the error output if the script failed.

    Raises:
        NotInBrowserError: This Python runs in a browser.

    Example:
        source = FileSkillsSource("skills", script_runner=subprocess_script_runner(timeout=10))
    """
    not_in_browser(
        "Scripts as processes",
        reason=NO_PROCESSES,
        instead="Pass a function of yours as script_runner=, or give the skill functions instead of scripts.",
    )
    require_seconds("timeout", timeout)
    require_limit("max_output", max_output)
    parse = argument_parser or _as_words
    variables = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    variables |= {"LANG": "C.UTF-8", "PYTHONIOENCODING": "utf-8", **(env or {})}

    async def run(skill: FileSkill, script: FileSkillScript, args: Any = None) -> str:
        words = await run_in_thread(_interpreter, script.full_path)
        if not words:
            endings = ", ".join(SCRIPT_ENDINGS)
            return (
                f"Error: {script.name!r} was not run. Expected a '#!' line that names its interpreter, or: {endings}."
            )
        if words[0].startswith("python"):
            program: str | None = python or sys.executable
        else:
            program = shutil.which(words[0], path=variables.get("PATH"))
        if program is None:
            return f"Error: {script.name!r} was not run. It needs {words[0]!r}, which is not installed."
        mark = secrets.token_hex(
            16
        )  # random instead of an id of the run, because no other process may have the same mark
        process = await asyncio.create_subprocess_exec(
            program,
            *words[1:],
            script.full_path,
            *parse(args),
            cwd=skill.path,
            env={**variables, _MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            outputs = asyncio.gather(_read(process.stdout, max_output), _read(process.stderr, max_output))
            output, errors = await asyncio.wait_for(outputs, timeout)
            code = await asyncio.wait_for(process.wait(), timeout)
        except TimeoutError:
            return f"Error: The script was stopped after {timeout:g} seconds."
        finally:
            _kill(process)
            detached = _kill_marked(f"{_MARK}={mark}".encode())
            await process.wait()
            for _ in range(_REAPED_WITHIN):  # a killed process remains visible until its parent reaps it
                if not any(map(_is_there, detached)):
                    break
                await asyncio.sleep(0.02)
        return output if code == 0 else f"{output}\nThe script failed with exit code {code}.\n{errors}".strip()

    return run


def _interpreter(path: str) -> list[str]:
    """Return the interpreter of a script with its options; empty if neither `#!` line nor ending names one."""
    with open(path, "rb") as file:
        line = file.readline(_CHUNK)
    words = line[2:].decode("utf-8", "replace").split() if line.startswith(b"#!") else []
    if words and PurePath(words[0]).name == "env":  # #!/usr/bin/env -S node --option
        words = [word for word in words[1:] if word != "-S"]
    if words:
        # The path in the line is from the author's machine; here the program may be elsewhere.
        return [
            words[0] if os.path.exists(words[0]) and "python" not in words[0] else PurePath(words[0]).name,
            *words[1:],
        ]
    interpreter = _INTERPRETERS.get(PurePath(path).suffix.lower())
    return [] if interpreter is None else [interpreter]


def _as_words(args: Any) -> list[str]:
    if isinstance(args, Mapping):
        return [word for name, value in args.items() for word in (f"--{name}", str(value))]
    if isinstance(args, str):  # the model passed a command line
        return shlex.split(args)
    return [str(word) for word in args or ()]


async def _read(stream: Any, limit: int) -> str:
    """Read a stream to its end, and return its beginning up to the limit."""
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
        else:  # the script led a process group, which may exist even if the script itself has ended
            os.killpg(process.pid, signal.SIGKILL)


def _is_there(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}")


def _kill_marked(mark: bytes) -> set[int]:
    """Kill the processes that inherited the mark, until none is left: they may start others meanwhile."""
    killed: set[int] = set()
    search_again = True
    while search_again:
        search_again = False
        for path in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):  # the process has ended or belongs to another user
                if mark in path.read_bytes().split(b"\0"):
                    os.kill(pid := int(path.parent.name), signal.SIGKILL)
                    killed.add(pid)
                    search_again = True
    return killed
