"""The renderers that find the positions of a graph: lookup, automatic choice and cache.

A renderer named by `configure(renderer=)`, by the variable AGENTBENCH_RENDERER or in a call is always used, and its
failure is an error. Otherwise the first installed one in the order of `ORDER` is used; if it fails, the built-in one.
"""

import contextlib
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from agentbench.exceptions import RendererUnavailable, RenderFailed
from agentbench.notebook.graph.dot import read_positions, to_dot
from agentbench.notebook.graph.layout import Detail, Direction, Layout, place
from agentbench.notebook.runtime import settings
from agentbench.workflows.draw.shape import GraphShape

ORDER = ("pure", "dot", "builtin")
"""The order of the automatic choice: `pure` uses no system fonts, so its output is the same everywhere."""

ENVIRONMENT = "AGENTBENCH_RENDERER"

_PACKAGE = {"pure": "graphviz-pure", "dot": "Graphviz (the program dot)"}
# How to install renderers that are not in an extra.
_COMMAND = {"dot": "apt install graphviz, brew install graphviz or winget install graphviz"}

_IN_BROWSER = "A browser cannot start programs: use 'builtin', which needs none."

# Control characters, surrogates and non-characters: XML forbids them, and renderers should not have to handle them.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_BAD_LINE = re.compile(r"line (\d+)")


@dataclass(frozen=True)
class Renderer:
    """An installed renderer, with the path of its program, if any. The version is part of the cache key."""

    name: str
    version: str
    program: str | None = None


def arrange(
    shape: GraphShape, direction: Direction, detail: Detail, renderer: str | None
) -> tuple[Layout, RenderFailed | None]:
    """Return the layout of a graph by the named, configured or automatic renderer.

    The second value is the error of a program if the built-in layout was used instead.
    """
    named = renderer or settings.current().renderer or os.environ.get(ENVIRONMENT)
    chosen = find_renderer(named) if named else automatic()
    problem = None
    if chosen.program is not None:
        try:
            answer = run_program(chosen, to_dot(shape, direction=direction, detail=detail))
            try:
                return read_positions(answer, shape), None
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                raise RenderFailed(chosen.name, f"its answer has no positions ({error!r})") from error
        except RenderFailed as failure:
            if named:
                raise
            problem = RenderFailed(failure.renderer, failure.reason, dot_line=failure.dot_line, fallback="builtin")
    return place(shape, direction, detail), problem


def find_renderer(name: str) -> Renderer:
    """Return a renderer by name; `RendererUnavailable` if it is not installed, `ValueError` if it does not exist."""
    if name not in ORDER:
        msg = f"There is no renderer {name!r}. Use one of {', '.join(map(repr, ORDER))}."
        raise ValueError(msg)
    found = _look_for(name)
    if found is None:
        advice = _IN_BROWSER if sys.platform == "emscripten" else None
        raise RendererUnavailable(name, _PACKAGE[name], command=_COMMAND.get(name), advice=advice)
    return found


@functools.cache
def automatic() -> Renderer:
    """Return the default renderer; decided once per process."""
    return next(found for found in map(_look_for, ORDER) if found is not None)


@functools.cache
def _look_for(name: str) -> Renderer | None:
    if name == "builtin":
        return Renderer("builtin", "1")
    program = _pure_program() if name == "pure" else shutil.which("dot")
    if program is None or sys.platform == "emscripten":  # no processes available
        return None
    if name == "dot":
        return Renderer(name, _start([program, "-V"], b"", "dot").stderr.decode("utf-8", "replace").strip(), program)
    try:
        return Renderer(name, metadata.version("graphviz-pure"), program)
    except metadata.PackageNotFoundError:
        return Renderer(name, "?", program)


def _pure_program() -> str | None:
    """Find the program next to this interpreter, then in the package's file list, then on the PATH."""
    folders = [sysconfig.get_path("scripts")]
    with contextlib.suppress(metadata.PackageNotFoundError):
        listed = metadata.distribution("graphviz-pure").files or ()
        folders += [str(Path(str(file.locate())).parent) for file in listed if file.stem == "graphviz-pure"]
    return shutil.which("graphviz-pure", path=os.pathsep.join(folders)) or shutil.which("graphviz-pure")


@functools.lru_cache(maxsize=64)
def run_program(renderer: Renderer, dot: str) -> Any:
    """Return the positions that a program finds for DOT text, as Graphviz's JSON."""
    dot = _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", dot)
    done = _start([str(renderer.program), "-Tjson0"], dot.encode(), renderer.name)
    if done.returncode != 0 or not done.stdout:
        complaints = [line.strip() for line in done.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
        errors = [line for line in complaints if "error" in line.lower()] or complaints
        reason = errors[0] if errors else f"exit status {done.returncode}, no positions"
        number, lines = _BAD_LINE.search(reason), ["", *dot.splitlines()]
        bad_line = lines[int(number[1])].strip()[:200] if number and int(number[1]) < len(lines) else None
        raise RenderFailed(renderer.name, reason, dot_line=bad_line or None)
    try:
        return json.loads(done.stdout)
    except ValueError as error:
        raise RenderFailed(renderer.name, f"its answer is not JSON ({error})") from error


def _start(command: list[str], stdin: bytes, name: str) -> "subprocess.CompletedProcess[bytes]":
    timeout_s = settings.current().render_timeout_s
    try:
        return subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            timeout=timeout_s,
            check=False,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except subprocess.TimeoutExpired as error:
        raise RenderFailed(name, f"it took longer than {timeout_s:g} s (render_timeout_s)") from error
    except OSError as error:
        raise RenderFailed(name, f"its program could not be started ({error.strerror or error})") from error
