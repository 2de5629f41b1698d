"""How this process shows things: one immutable value, replaced by `configure`."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

from agentbench._bridge import choose_engine_loop
from agentbench._clock import CountingIds, RandomIds, SystemClock, TickingClock, set_runtime_defaults
from agentbench.notebook.usage_prices import Price, read_prices

__all__ = ["RendererName", "Settings", "Theme", "configure", "current", "parse_setting"]

RendererName = Literal["pure", "dot", "builtin", "wasm"]
Theme = Literal["auto", "light", "dark"]
LoopName = Literal["engine", "kernel", "uvloop"]

_CHOICES: dict[str, tuple[str, ...]] = {
    "renderer": get_args(RendererName),
    "theme": get_args(Theme),
    "loop": get_args(LoopName),
}
_TRUE, _FALSE, _NONE = ("true", "yes", "on", "1"), ("false", "no", "off", "0"), ("none", "auto", "")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What `configure` sets.

    Attributes:
        renderer: Who turns DOT into pictures; `None` takes the first that is there (see `rendering.renderers`).
        theme: Colours of static pictures; `auto` follows the reader's browser.
        live_graph: `False` shows graphs in steppers without anywidget, as plain pictures with a list of nodes.
        static_png: Whether stored outputs hold a PNG beside the SVG, for pages that show no SVG.
        deterministic: Whether times tick from 2024-01-01 and ids count from 1, so that outputs are equal in each run.
        observe: Whether runs emit observation events by default.
        loop: Where steppers run: on the engine thread (`uvloop`: the same, on uvloop), or on the kernel's own loop.
        render_timeout_s: How long a renderer may take, in seconds.
        prices: What a million tokens cost, by model name: `Price`, or numbers `(input, output)`. None are built in.
    """

    renderer: RendererName | None = None
    theme: Theme = "auto"
    live_graph: bool = True
    static_png: bool = False
    deterministic: bool = False
    observe: bool = False
    loop: LoopName = "engine"
    render_timeout_s: float = 10.0
    prices: Mapping[str, Price] = field(default_factory=dict, hash=False)


_current = Settings()


def current() -> Settings:
    """Return the settings as they are now."""
    return _current


def configure(**settings: Any) -> Settings:
    """Change settings of this process and return all of them; without arguments, only return them.

    Args:
        **settings: Attributes of `Settings`. What is not named stays as it is.

    Raises:
        TypeError: For a name that is no setting.
        ValueError: For a value that the setting does not take. Nothing is changed then.
        RuntimeError: For another loop while the engine thread runs already.

    Example:
        ```python
        configure(deterministic=True)  # first cell of a notebook whose outputs are compared
        ```
    """
    global _current
    checked = {name: _checked(name, value) for name, value in settings.items()}
    _apply(checked)
    _current = replace(_current, **checked)
    return _current


def parse_setting(name: str, text: str) -> Any:
    """Read the value of a setting from text, as `%agentbench set name=text` has it.

    Raises:
        TypeError: For a name that is no setting.
        ValueError: For a text that says no value of this setting.
    """
    kind = _known(name)
    word = text.strip().strip("\"'")
    if kind is bool and word.lower() in _TRUE + _FALSE:
        return word.lower() in _TRUE
    if kind is float:
        try:
            return float(word)
        except ValueError as error:
            raise _refused(name, text, "a number of seconds") from error
    if name == "renderer" and word.lower() in _NONE:
        return None
    return _checked(name, word)


def _apply(changed: dict[str, Any]) -> None:
    if "deterministic" in changed:
        if changed["deterministic"]:
            set_runtime_defaults(clock=TickingClock(), ids=CountingIds())
        else:
            set_runtime_defaults(clock=SystemClock(), ids=RandomIds())
    if "observe" in changed:
        set_runtime_defaults(observe=changed["observe"])
    if "loop" in changed and changed["loop"] != "kernel":
        choose_engine_loop("uvloop" if changed["loop"] == "uvloop" else "asyncio")


def _known(name: str) -> type:
    kinds = {field.name: type(field.default) for field in fields(Settings)}
    if name not in kinds:
        close = difflib.get_close_matches(name, kinds, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        msg = f"There is no setting {name!r}. The settings are {', '.join(kinds)}.{hint}"
        raise TypeError(msg)
    return kinds[name]


def _checked(name: str, value: Any) -> Any:
    kind = _known(name)
    if name == "renderer" and value is None:
        return None
    if name == "prices":
        return read_prices(value)
    if name in _CHOICES:
        if value not in _CHOICES[name]:
            raise _refused(name, value, " or ".join(map(repr, _CHOICES[name])))
    elif kind is bool and not isinstance(value, bool):
        raise _refused(name, value, "True or False")
    elif kind is float and (isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0):
        raise _refused(name, value, "a positive number of seconds")
    return value


def _refused(name: str, value: object, expected: str) -> ValueError:
    return ValueError(f"{name}={value!r} is not possible. Expected {expected}. Nothing was changed.")
