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
from agentbench.notebook.runtime.waiting import nest_state

__all__ = ["Finding", "Report", "doctor"]

SUPPORTED = ((3, 10), (3, 13))
_INSTALL = 'pip install "agentbench[notebook]"'
_REQUIREMENT = re.compile(r"^([\w.-]+)(?:\[[\w,.-]+\])?\s*(?:>=\s*([\d.]+))?[^;]*(?:;\s*(.*))?$")
_EXTRA = re.compile(r"extra\s*==\s*['\"]([\w-]+)['\"]")
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
_VARIABLES = re.compile(r"^(AGENTBENCH_|OPENAI_)")


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
    findings: list[Finding] = []
    for check in (
        _python,
        _packages,
        _renderer,
        _engine,
        _kernel,
        _nesting,
        _widgets,
        _front_end,
        _settings,
        _variables,
    ):
        findings.extend(_run_check(check))
    return Report(tuple(findings))


def _run_check(check: Callable[[], Iterator[Finding]]) -> list[Finding]:
    """Return the findings of a check; a check that raises is a finding too."""
    try:
        return list(check())
    except Exception as error:  # noqa: BLE001 - the error of a broken installation is the finding
        return [Finding(check.__name__.strip("_"), "could not be checked", f"{type(error).__name__}: {error}")]


def _python() -> Iterator[Finding]:
    version = sys.version_info[:2]
    problem = ""
    if version < SUPPORTED[0]:
        problem = f"Python {SUPPORTED[0][0]}.{SUPPORTED[0][1]} or newer is needed."
    untested = ", newer than what agentbench is tested with" if version > SUPPORTED[1] else ""
    yield Finding("python", f"{platform.python_version()} ({platform.python_implementation()}){untested}", problem)
    yield Finding("agentbench", _version("agentbench") or "not installed, used from its folder")


# --- packages ---------------------------------------------------------------------------------------------------------


def _packages() -> Iterator[Finding]:
    for package, least in _requirements():
        version = _version(package)
        if version is None:
            yield Finding(package, "missing", _INSTALL)
        elif least and _numbers(version) < _numbers(least):
            yield Finding(package, version, f"{least} or newer is needed: {_INSTALL}")
        else:
            yield Finding(package, version)
    required = {_plain(package) for package, _ in _requirements()}
    for package, extra in _OF_EXTRAS.items():
        if package not in required:
            yield Finding(package, _version(package) or f'not installed; pip install "agentbench[{extra}]" brings it')


def _requirements() -> list[tuple[str, str]]:
    """Return the packages of agentbench itself and of its extra `notebook`, with their least versions."""
    try:
        requirements = metadata.requires("agentbench") or []
    except metadata.PackageNotFoundError:
        return [(package, "") for package in _PACKAGES]
    wanted = []
    for requirement in requirements:
        match = _REQUIREMENT.match(requirement)
        if match is None or _plain(match[1]) == "agentbench":  # an extra of its own
            continue
        marker = match[3] or ""
        extra = _EXTRA.search(marker)
        if (extra is None or extra[1] == "notebook") and _applies(marker):
            wanted.append((match[1], match[2] or ""))
    return wanted


def _plain(package: str) -> str:
    """Return the normalized name of a package."""
    return package.lower().replace("_", "-")


def _applies(marker: str) -> bool:
    """Whether a requirement is meant for this Python; understands the one form that is used."""
    least = re.search(r"python_version\s*>=\s*['\"]([\d.]+)['\"]", marker)
    return least is None or sys.version_info[:2] >= _numbers(least.group(1))


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version.split("+")[0])[:3])


# --- what is chosen ---------------------------------------------------------------------------------------------------


def _renderer() -> Iterator[Finding]:
    named = settings.current().renderer or os.environ.get(renderers.ENVIRONMENT)
    try:
        chosen = renderers.find_renderer(named) if named else renderers.automatic()
        if chosen.program is not None:
            renderers.render_dot("digraph { a -> b }", "svg", renderer=chosen.name)
    except (AgentFrameworkException, ValueError) as error:
        yield Finding("renderer", str(named or "none"), str(error))
        return
    how = "chosen by name" if named else "chosen by itself"
    yield Finding("renderer", f"{chosen.name} {chosen.version}, {how}")


def _engine() -> Iterator[Finding]:
    if not _bridge.threads_available():
        yield Finding("engine", "no threads here: runs use the notebook's own loop")
        return
    if not _bridge.on_engine_thread():
        _bridge.run_sync(asyncio.sleep(0), timeout=10)
    engine = _bridge.engine_thread()
    yield Finding("engine", f"a thread of its own, loop {engine.loop_name}; steppers run on {_stepper_loop()}")


def _stepper_loop() -> str:
    return "the kernel's loop" if settings.current().loop == "kernel" else "the engine thread"


def _kernel() -> Iterator[Finding]:
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if getattr(shell, "kernel", None) is not None:
        yield Finding("kernel", f"ipykernel {_version('ipykernel') or 'unknown'}")
    else:
        yield Finding("kernel", "none: panels are printed as text here")


def _nesting() -> Iterator[Finding]:
    state = nest_state()
    loaded = f"loaded: {', '.join(state.loaded)}" if state.loaded else "not loaded"
    problem = ""
    if not state.task_is_c and state.applied is None:
        problem = "A library replaced asyncio's tasks by slower ones. Restart, and look for one that nests loops."
    applied = f", applied by run_sync(nested=True): {state.applied}" if state.applied else ""
    yield Finding("nest packages", loaded + applied, problem)


def _widgets() -> Iterator[Finding]:
    if not settings.current().live_graph:
        yield Finding("widgets", "off, by configure(live_graph=False): pictures and texts instead")
        return
    try:
        import anywidget
        import ipywidgets
    except ModuleNotFoundError as error:
        yield Finding("widgets", "missing", f"{error.name} is not installed: {_INSTALL}")
        return
    yield Finding("widgets", f"ipywidgets {ipywidgets.__version__}, anywidget {anywidget.__version__}")


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
    names = sorted(name for name in os.environ if _VARIABLES.match(name))
    if names:
        yield Finding("variables", f"set: {', '.join(names)}")
