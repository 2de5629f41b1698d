import os
import subprocess
import sys
from typing import Any

import pytest

from agentbench import _clock
from agentbench._clock import CountingIds, RandomIds, SystemClock, TickingClock
from agentbench.notebook import Settings, configure
from agentbench.notebook.runtime import settings
from agentbench.notebook.runtime.settings import from_environment, parse_setting
from tests.parts.errors import raises


def test_a_wrong_value_changes_nothing():
    wrong: Any
    for wrong in [
        {"renderer": "magic"},
        {"theme": 3},
        {"live_graph": "yes"},
        {"render_timeout_s": 0},
        {"render_timeout_s": True},
    ]:
        before = settings.current()
        with raises(ValueError, "Input should be"):
            configure(static_png=True, **wrong)
        assert settings.current() == before


def test_deterministic_replaces_clock_and_ids_and_gives_them_back():
    configure(deterministic=True)
    assert isinstance(_clock.runtime_defaults().clock, TickingClock)
    assert isinstance(_clock.runtime_defaults().ids, CountingIds)
    configure(deterministic=False)
    assert isinstance(_clock.runtime_defaults().clock, SystemClock)
    assert isinstance(_clock.runtime_defaults().ids, RandomIds)


def test_text_that_says_no_value_is_refused():
    for name, text in [("static_png", "maybe"), ("render_timeout_s", "soon"), ("theme", "pink")]:
        with pytest.raises(ValueError, match=name):
            parse_setting(name, text)


def test_only_what_was_changed_is_in_the_short_form_and_everything_in_the_view():
    settings = configure(theme="dark", static_png=False)
    assert repr(settings) == "Settings(theme='dark', static_png=False)"
    assert repr(Settings()) == "Settings()"
    shown = settings._repr_mimebundle_()
    lines = {line.split()[0]: line.split()[1:] for line in shown["text/plain"].splitlines()[2:]}
    assert list(lines) == list(vars(Settings()))
    assert lines["theme"] == ["dark", "changed"]
    assert lines["renderer"] == ["auto"]
    assert "dark" in shown["text/html"]


def test_the_environment_gives_what_is_not_configured():
    found, wrong = from_environment(
        {
            "AGENTBENCH_THEME": "dark",
            "AGENTBENCH_DETERMINISTIC": "1",
            "AGENTBENCH_RENDER_TIMEOUT_S": "2.5",
            "AGENTBENCH_STATIC_PNG": "",
            "AGENTBENCH_RENDERER": "dot",
            "THEME": "light",
        }
    )
    assert found == {"theme": "dark", "deterministic": True, "render_timeout_s": 2.5}
    assert wrong == {}


def test_a_fresh_process_begins_with_what_the_environment_says():
    script = (
        "import warnings; warnings.simplefilter('always')\n"
        "from agentbench.notebook import configure\n"
        "from agentbench._clock import runtime_defaults\n"
        "print(configure(), type(runtime_defaults().ids).__name__)"
    )
    variables = {"AGENTBENCH_DETERMINISTIC": "yes", "AGENTBENCH_THEME": "pink"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.strip() == "Settings(deterministic=True) CountingIds"
    assert "AGENTBENCH_THEME was ignored. Input should be 'auto', 'light' or 'dark'." in done.stderr
    assert "pink" not in done.stderr


def test_a_loop_that_comes_too_late_is_reported_and_not_taken():
    script = (
        "import asyncio\n"
        "from agentbench import run_sync\n"
        "run_sync(asyncio.sleep(0))\n"
        "from agentbench.notebook import configure\n"
        "print(configure())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "AGENTBENCH_LOOP": "uvloop"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.strip() == "Settings()"
    assert "AGENTBENCH_LOOP was ignored" in done.stderr
