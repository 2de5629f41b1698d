"""Lists what pytest-benchmark keeps in `extra_info` but does not show."""

from typing import Any


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    session = getattr(config, "_benchmarksession", None)
    facts = [
        f"{bench.name}: {name} {value:.3g}"
        for bench in (session.benchmarks if session is not None else ())
        for name, value in bench.extra_info.items()
        if isinstance(value, float)
    ]
    if facts:
        terminalreporter.section("against plain asyncio")
        terminalreporter.write_line("\n".join(facts))
