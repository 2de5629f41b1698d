"""`doctor`: what is installed, what is chosen and what is missing, without a path and without a secret."""

from __future__ import annotations

import asyncio
import os
import platform
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata

from agentbench import _bridge
from agentbench.exceptions import AgentFrameworkException
from agentbench.notebook.graph import renderers
from agentbench.notebook.runtime import settings
from agentbench.notebook.runtime.kernel import in_kernel
from agentbench.notebook.runtime.waiting import nest_state

__all__ = ["Finding", "Report", "doctor"]

_OLDEST, _NEWEST = (3, 10), (3, 13)
_INSTALL = 'pip install "agentbench[notebook]"'
_REQUIREMENT = re.compile(r"^([\w.-]+)(?:\[[\w,.-]+\])?\s*(?:>=\s*([\d.]+))?[^;]*(?:;\s*(.*))?$")
_EXTRA = re.compile(r"extra\s*==\s*['\"]([\w-]+)['\"]")
_LEAST_PYTHON = re.compile(r"python_version\s*>=\s*['\"]([\d.]+)['\"]")
# The packages to look for if agentbench itself is not installed, so that its requirements are unknown.
_PACKAGES = ("anywidget", "graphviz", "ipywidgets", "jupyterlab", "pandas")
#: Packages of other extras; without them everything else works.
_OF_EXTRAS = {
    "mcp": "mcp",
    "openai": "openai",
    "opentelemetry-sdk": "otel",
    "psycopg": "postgres",
    "python-dotenv": "settings",
    "redis": "redis",
    "sqlalchemy": "sql",
}


@dataclass(frozen=True)
class Finding:
    """One line of the report.

    Attributes:
        topic: The part that was checked, such as a package.
        found: What is there, such as its version.
        problem: What is wrong and how to mend it; empty if nothing is wrong.
    """

    topic: str
    found: str
    problem: str = ""


@dataclass(frozen=True)
class Report:
    """The findings of `doctor`; a cell displays them as text.

    Attributes:
        findings: All findings, in the order of the checks.
    """

    findings: tuple[Finding, ...]

    @property
    def problems(self) -> tuple[Finding, ...]:
        """The findings that need mending."""
        return tuple(finding for finding in self.findings if finding.problem)

    @property
    def ok(self) -> bool:
        """Whether everything is in order."""
        return not self.problems

    @property
    def text(self) -> str:
        """A table with a sign, topic and finding per line, and below each problem how to mend it."""
        width = max(len(finding.topic) for finding in self.findings)
        lines = []
        for finding in self.findings:
            lines.append(f"{'✗' if finding.problem else '✓'} {finding.topic:<{width}}  {finding.found}")
            if finding.problem:
                lines.append(f"  {'':<{width}}  {finding.problem}")
        count = len(self.problems)
        lines.append("Everything is in order." if not count else f"{count} to mend.")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Report({len(self.findings)} findings, {len(self.problems)} to mend)"

    def __str__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": self.text}


def doctor() -> Report:
    """Check this Python, its packages, the renderer, the engine's loop, the kernel and the widgets.

    Starts the engine thread and draws one small graph, to see that both work. Nothing is changed, and nothing leaves
    this machine.

    Example:
        report = doctor()
        report.ok, report.problems
    """
    return Report(tuple(finding for topic, check in _CHECKS.items() for finding in _run_check(topic, check)))


def _run_check(topic: str, check: Callable[[], Iterator[Finding]]) -> list[Finding]:
    """Return the findings of a check; a check that raises is a finding too."""
    try:
        return list(check())
    except Exception as error:  # noqa: BLE001 - the error of a broken installation is the finding
        return [Finding(topic, "could not be checked", f"{type(error).__name__}: {error}")]


def _python() -> Iterator[Finding]:
    version = sys.version_info[:2]
    problem = f"Python {_OLDEST[0]}.{_OLDEST[1]} or newer is needed." if version < _OLDEST else ""
    untested = ", newer than what agentbench is tested with" if version > _NEWEST else ""
    yield Finding("python", f"{platform.python_version()} ({platform.python_implementation()}){untested}", problem)
    yield Finding("agentbench", _version("agentbench") or "not installed, used from its folder")


def _packages() -> Iterator[Finding]:
    required = dict(_requirements())
    for package, least in required.items():
        version = _version(package)
        if version is None:
            yield Finding(package, "missing", _INSTALL)
        else:
            old = _numbers(version) < _numbers(least)
            yield Finding(package, version, f"{least} or newer is needed: {_INSTALL}" if old else "")
    for package, extra in _OF_EXTRAS.items():
        if package not in map(_plain, required):
            yield Finding(package, _version(package) or f'not installed; pip install "agentbench[{extra}]" brings it')


def _requirements() -> Iterator[tuple[str, str]]:
    """Yield the packages of agentbench itself and of its extra `notebook`, with their least versions."""
    try:
        requirements = metadata.requires("agentbench") or []
    except metadata.PackageNotFoundError:
        requirements = list(_PACKAGES)
    for match in filter(None, map(_REQUIREMENT.match, requirements)):
        marker = match[3] or ""
        extra, python = _EXTRA.search(marker), _LEAST_PYTHON.search(marker)
        for_this = python is None or sys.version_info[:2] >= _numbers(python[1])
        # agentbench itself is required by extras that hold others.
        if for_this and (extra is None or extra[1] == "notebook") and _plain(match[1]) != "agentbench":
            yield match[1], match[2] or ""


def _plain(package: str) -> str:
    return package.lower().replace("_", "-")


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version.split("+")[0])[:3])


def _renderer() -> Iterator[Finding]:
    named = settings.current().renderer or os.environ.get(renderers.ENVIRONMENT)
    try:
        chosen = renderers.find_renderer(named) if named else renderers.automatic()
        if chosen.program is not None:
            renderers.render_dot("digraph { a -> b }", "svg", renderer=chosen.name)
    except (AgentFrameworkException, ValueError) as error:
        yield Finding("renderer", str(named or "none"), str(error))
    else:
        how = "chosen by name" if named else "chosen by itself"
        yield Finding("renderer", f"{chosen.name} {chosen.version}, {how}")


def _engine() -> Iterator[Finding]:
    if not _bridge.threads_available():
        yield Finding("engine", "no threads here: runs use the notebook's own loop")
        return
    if not _bridge.on_engine_thread():
        _bridge.run_sync(asyncio.sleep(0), timeout=10)
    steppers = "the kernel's loop" if settings.current().loop == "kernel" else "the engine thread"
    loop = _bridge.engine_thread().loop_name
    yield Finding("engine", f"a thread of its own, loop {loop}; steppers run on {steppers}")


def _kernel() -> Iterator[Finding]:
    kernel = f"ipykernel {_version('ipykernel') or 'unknown'}"
    yield Finding("kernel", kernel if in_kernel() else "none: panels are printed as text here")


def _nesting() -> Iterator[Finding]:
    state = nest_state()
    loaded = f"loaded: {', '.join(state.loaded)}" if state.loaded else "not loaded"
    problem = ""
    if not state.task_is_c and state.applied is None:
        problem = "A library replaced asyncio's tasks by slower ones. Restart, and look for one that nests loops."
    applied = f", applied by run_sync(nested=True): {state.applied}" if state.applied else ""
    yield Finding("nest packages", loaded + applied, problem)


def _widgets() -> Iterator[Finding]:
    versions = {name: _version(name) for name in ("ipywidgets", "anywidget")}
    missing = [name for name, version in versions.items() if version is None]
    if not settings.current().live_graph:
        yield Finding("widgets", "off, by configure(live_graph=False)")
    elif missing:
        yield Finding("widgets", "missing", f"{missing[0]} is not installed: {_INSTALL}")
    else:
        yield Finding("widgets", ", ".join(f"{name} {version}" for name, version in versions.items()))


def _front_end() -> Iterator[Finding]:
    if "google.colab" in sys.modules:
        call = "from google.colab import output; output.enable_custom_widget_manager()"
        yield Finding("front end", f"Colab; panels need: {call}")
    elif "VSCODE_PID" in os.environ:
        yield Finding("front end", "VS Code; without a network, panels need: configure(live_graph=False)")


def _settings() -> Iterator[Finding]:
    # Settings with longer values are reported by their names only.
    changed = settings.current().changed
    words = [f"{name}={value}" if isinstance(value, (bool, str, float)) else name for name, value in changed.items()]
    _, wrong = settings.from_environment(os.environ)
    problem = " ".join(f"{variable} is ignored. {expected}" for variable, expected in wrong.items())
    yield Finding("settings", ", ".join(words) or "as they come", problem)


def _variables() -> Iterator[Finding]:
    names = sorted(name for name in os.environ if name.startswith(("AGENTBENCH_", "OPENAI_")))
    if names:
        yield Finding("variables", f"set: {', '.join(names)}")


_CHECKS: dict[str, Callable[[], Iterator[Finding]]] = {
    "python": _python,
    "packages": _packages,
    "renderer": _renderer,
    "engine": _engine,
    "kernel": _kernel,
    "nest packages": _nesting,
    "widgets": _widgets,
    "front end": _front_end,
    "settings": _settings,
    "variables": _variables,
}
