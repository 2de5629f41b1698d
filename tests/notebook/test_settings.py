import pytest

from agentbench import _bridge, _clock
from agentbench._clock import CountingIds, RandomIds, SystemClock, TickingClock
from agentbench.notebook import settings
from agentbench.notebook.settings import Settings, configure, parse_setting


def test_settings_change_one_by_one_and_the_rest_stays():
    configure(theme="dark")
    assert configure(static_png=True) == Settings(theme="dark", static_png=True)
    assert configure() == settings.current()


def test_an_unknown_setting_is_told_its_neighbour():
    with pytest.raises(TypeError, match="Did you mean 'renderer'"):
        configure(renderr="pure")


@pytest.mark.parametrize(
    "wrong",
    [{"renderer": "magic"}, {"theme": 3}, {"live_graph": "yes"}, {"render_timeout_s": 0}, {"render_timeout_s": True}],
)
def test_a_wrong_value_changes_nothing(wrong):
    before = settings.current()
    with pytest.raises(ValueError, match="Expected"):
        configure(static_png=True, **wrong)
    assert settings.current() == before


def test_deterministic_replaces_clock_and_ids_and_gives_them_back():
    configure(deterministic=True)
    assert isinstance(_clock.runtime_defaults().clock, TickingClock)
    assert isinstance(_clock.runtime_defaults().ids, CountingIds)
    configure(deterministic=False)
    assert isinstance(_clock.runtime_defaults().clock, SystemClock)
    assert isinstance(_clock.runtime_defaults().ids, RandomIds)


def test_observe_is_a_default_of_the_process():
    configure(observe=True)
    assert _clock.runtime_defaults().observe is True


def test_the_loop_of_the_engine_is_chosen_where_it_is_made(monkeypatch: pytest.MonkeyPatch):
    chosen: list[str] = []
    monkeypatch.setattr(settings, "choose_engine_loop", chosen.append)
    configure(loop="uvloop")
    configure(loop="kernel")
    configure(loop="engine")
    assert chosen == ["uvloop", "asyncio"]
    assert callable(_bridge.choose_engine_loop)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("static_png", "on", True),
        ("live_graph", "False", False),
        ("renderer", "auto", None),
        ("renderer", "'builtin'", "builtin"),
        ("theme", " dark ", "dark"),
        ("render_timeout_s", "2.5", 2.5),
    ],
)
def test_values_are_read_from_text(name: str, text: str, value: object):
    assert parse_setting(name, text) == value


@pytest.mark.parametrize(("name", "text"), [("static_png", "maybe"), ("render_timeout_s", "soon"), ("theme", "pink")])
def test_text_that_says_no_value_is_refused(name: str, text: str):
    with pytest.raises(ValueError, match=name):
        parse_setting(name, text)
