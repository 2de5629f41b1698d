"""`doctor`: reports installed, selected and missing parts, without paths and secrets."""

from __future__ import annotations

import asyncio
import os
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata

from agentbench import _bridge
from agentbench._extras import require
from agentbench._text.phrases import count_text
from agentbench.exceptions import AgentFrameworkException, install_command
from agentbench.notebook.graph import renderers
from agentbench.notebook.runtime import settings
from agentbench.notebook.runtime.kernel import in_kernel
from agentbench.notebook.runtime.waiting import nest_state

_NEWEST_PYTHON = (3, 13)
# Everything else works without the packages of these extras.
_OTHER_EXTRAS = ("mcp", "openai", "otel", "postgres", "redis", "settings", "sql")


@dataclass(frozen=True)
class Finding:
    """One line of the report: a part, such as a package, the finding, and a problem with its solution.

    `is_absent` marks an optional part that is not there, which is not a problem.
    """

    topic: str
    found: str
    problem: str = ""
    is_absent: bool = False

    @property
    def sign(self) -> str:
        """A cross for a problem, a dash for an optional part that is not there, otherwise a tick."""
        return "✗" if self.problem else "–" if self.is_absent else "✓"  # noqa: RUF001 - a dash


@dataclass(frozen=True)
class DoctorReport:
    """The findings of `doctor`, in the order of the checks; a cell displays them as text."""

    findings: tuple[Finding, ...]

    @property
    def problems(self) -> tuple[Finding, ...]:
        """The findings with a problem."""
        return tuple(finding for finding in self.findings if finding.problem)

    @property
    def ok(self) -> bool:
        """Whether everything is in order."""
        return not self.problems

    @property
    def text(self) -> str:
        """A table with a sign, topic and finding per line, and the solution below each problem."""
        width = max(len(finding.topic) for finding in self.findings)
        lines = []
        for finding in self.findings:
            lines.append(f"{finding.sign} {finding.topic:<{width}}  {finding.found}")
            lines += [f"  {'':<{width}}  {finding.problem}"] if finding.problem else []
        count = len(self.problems)
        return "\n".join([*lines, f"{count_text(count, 'problem')}." if count else "No problems found."])

    def __repr__(self) -> str:
        return f"DoctorReport({len(self.findings)} findings, {len(self.problems)} with a problem)"

    def __str__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": self.text}


def doctor() -> DoctorReport:
    """Check this Python, its packages, the renderer, the engine's loop, the kernel and the widgets.

    Starts the engine thread and draws one small graph, to check that both work. Changes nothing and sends nothing
    over the network.

    Example:
        report = doctor()
        report.ok, report.problems
    """
    return DoctorReport(tuple(finding for check in _CHECKS for finding in _run_check(check)))


def _run_check(check: Callable[[], Iterator[Finding]]) -> list[Finding]:
    """Return the findings of a check; a check that raises is a finding too."""
    try:
        return list(check())
    except Exception as error:  # noqa: BLE001 - the error of a broken installation is the finding
        topic = check.__name__.replace("_", " ").strip()
        return [Finding(topic, "could not be checked", f"{type(error).__name__}: {error}")]


def _python() -> Iterator[Finding]:
    is_untested = sys.version_info[:2] > _NEWEST_PYTHON
    untested = ", newer than the versions that agentbench is tested with" if is_untested else ""
    yield Finding("python", f"{platform.python_version()} ({platform.python_implementation()}){untested}")
    yield Finding("agentbench", _version("agentbench") or "not installed; imported from its folder")


def _packages() -> Iterator[Finding]:
    read = require("packaging.requirements", extra="notebook", purpose="read what agentbench requires").Requirement
    requirements = [read(text) for text in metadata.requires("agentbench") or ()]
    listed = {"agentbench"}  # required by extras that contain others
    for extra in ("", "notebook", *_OTHER_EXTRAS):
        for each in requirements:
            if each.name in listed or not (each.marker is None or each.marker.evaluate({"extra": extra})):
                continue
            listed.add(each.name)
            version = _version(each.name)
            if extra in _OTHER_EXTRAS:
                missing = f"not installed; install it with: {install_command(extra)}"
                yield Finding(each.name, version or missing, is_absent=version is None)
            else:
                fits = version is None or each.specifier.contains(version, prereleases=True)
                command = install_command("notebook")
                problem = "" if version and fits else command if fits else f"needs {each.specifier}: {command}"
                yield Finding(each.name, version or "missing", problem)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _renderer() -> Iterator[Finding]:
    named = settings.current().renderer or os.environ.get(renderers.ENVIRONMENT)
    try:
        chosen = renderers.find_renderer(named) if named else renderers.automatic()
        if chosen.program is not None:
            renderers.run_program(chosen, "digraph { a -> b }")
    except (AgentFrameworkException, ValueError) as error:
        yield Finding("renderer", str(named or "none"), str(error))
    else:
        how = "configured" if named else "chosen automatically"
        yield Finding("renderer", f"{chosen.name} {chosen.version}, {how}")


def _engine() -> Iterator[Finding]:
    if not _bridge.threads_available():
        yield Finding("engine", "no threads available: runs use the notebook's own loop")
        return
    if not _bridge.on_engine_thread():
        _bridge.run_sync(asyncio.sleep(0), timeout=10)
    steppers = "the kernel's loop" if settings.current().loop == "kernel" else "the engine thread"
    loop = _bridge.engine_thread().loop_name
    yield Finding("engine", f"a separate thread, loop {loop}; steppers run on {steppers}")


def _nest_packages() -> Iterator[Finding]:
    state = nest_state()
    found = f"loaded: {', '.join(state.loaded)}" if state.loaded else "not loaded"
    if state.applied is not None:
        yield Finding("nest_asyncio", f"{found}, applied by run_sync(nested=True): {state.applied}")
    else:
        slow = "A library such as nest_asyncio replaced asyncio's tasks with slower ones. Restart Python without it."
        yield Finding("nest_asyncio", found, "" if state.task_is_c else slow)


def _widgets() -> Iterator[Finding]:
    kernel = f"ipykernel {_version('ipykernel')}" if in_kernel() else "not in a notebook: panels are printed as text"
    yield Finding("kernel", kernel, is_absent=not in_kernel())
    if not settings.current().live_graph:
        yield Finding("widgets", "disabled by configure(live_graph=False)")
    if "google.colab" in sys.modules:
        call = "from google.colab import output; output.enable_custom_widget_manager()"
        yield Finding("front end", f"Colab; panels need: {call}")
    elif "VSCODE_PID" in os.environ:
        yield Finding("front end", "VS Code; without a network, panels need: configure(live_graph=False)")


def _settings() -> Iterator[Finding]:
    # Only the names of settings with long values are reported.
    changed = settings.current().changed
    words = [f"{name}={value}" if isinstance(value, (bool, str, float)) else name for name, value in changed.items()]
    _, wrong = settings.from_environment(os.environ)
    problem = " ".join(f"{variable} is ignored. {expected}" for variable, expected in wrong.items())
    yield Finding("settings", ", ".join(words) or "defaults", problem)
    if names := sorted(name for name in os.environ if name.startswith(("AGENTBENCH_", "OPENAI_"))):
        yield Finding("variables", f"set: {', '.join(names)}")


_CHECKS = (_python, _packages, _renderer, _engine, _nest_packages, _widgets, _settings)
