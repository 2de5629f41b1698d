"""The notebook settings of this process: one immutable value, replaced by `configure`.

Settings that were not configured come from the environment: AGENTBENCH_THEME=dark is `configure(theme="dark")`, and the
same for every setting with a text form. (The renderer's variable is read when a picture is drawn.)
"""

import difflib
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

from agentbench._bridge import choose_engine_loop
from agentbench._clock import CountingIds, RandomIds, SystemClock, TickingClock, set_runtime_defaults
from agentbench._display import Displayable, drawn_by
from agentbench.messages.prices import Price, read_prices

RendererName = Literal["pure", "dot", "builtin"]
Theme = Literal["auto", "light", "dark"]
LoopName = Literal["engine", "kernel", "uvloop"]


@drawn_by("agentbench.notebook.cards.settings:settings_bundle")
@dataclass(frozen=True, kw_only=True)
class Settings(Displayable):
    """The settings of this process, changed and returned by `configure`; a cell displays them as a table.

    Attributes:
        renderer: Program or package that finds the positions in graphs; `None` uses the first installed one.
        theme: Colours of static pictures; `auto` follows the reader's browser.
        live_graph: `False` displays a picture and text instead of a live panel, as without anywidget.
        static_png: Whether outputs of graphs contain a small PNG in addition to the SVG, for untrusted notebooks.
        deterministic: Whether times start at 2024-01-01 and ids count from 1, so that outputs are equal in each run.
        observe: Whether runs emit observation events by default.
        loop: Where steppers run: on the engine thread (`uvloop`: the same, on uvloop), or on the kernel's own loop.
        render_timeout_s: Time limit of a renderer in seconds.
        prices: Prices per million tokens, by model name: `Price`, or numbers `(input, output)`. None are built in.

    Example:
        configure(theme="dark", prices={"gpt-4o": (2.5, 10)})
        print(configure().changed)
    """

    renderer: RendererName | None = None
    theme: Theme = "auto"
    live_graph: bool = True
    static_png: bool = True
    deterministic: bool = False
    observe: bool = False
    loop: LoopName = "engine"
    render_timeout_s: float = 10.0
    prices: Mapping[str, Price] = field(default_factory=dict, hash=False)

    @property
    def changed(self) -> dict[str, Any]:
        """The settings that differ from their defaults."""
        return {name: value for name, value in vars(self).items() if value != getattr(_DEFAULTS, name)}

    def __repr__(self) -> str:
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in self.changed.items())})"


_DEFAULTS = Settings()
_TYPES: dict[str, Any] = {each.name: each.type for each in fields(Settings)}


def current() -> Settings:
    """Return the current settings."""
    return _current


def configure(**settings: Any) -> Settings:
    """Change settings of this process and return all of them; without arguments, only return them.

    Args:
        **settings: Attributes of `Settings`. Other settings do not change.

    Raises:
        TypeError: A setting does not exist.
        ValueError: A value is invalid. Nothing is changed.
        RuntimeError: `loop` was changed while the engine thread is already running.

    Example:
        configure(deterministic=True)  # first cell of a notebook whose outputs are compared
    """
    global _current
    checked = {name: _check(name, value) for name, value in settings.items()}
    _apply(checked)
    _current = replace(_current, **checked)
    return _current


def choices_of(name: str) -> list[str]:
    """Return the possible values of a setting as text; empty if it does not exist or has too many values."""
    if name == "renderer":
        return ["auto", *get_args(RendererName)]
    return ["True", "False"] if _TYPES.get(name) is bool else list(get_args(_TYPES.get(name)))


def from_environment(variables: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the settings in environment variables, and the problems by name of the variable."""
    values: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    for name in (name for name in _TYPES if name not in ("renderer", "prices")):
        variable = f"AGENTBENCH_{name.upper()}"
        try:
            if text := variables.get(variable):
                values[name] = _validate(name, text, strict=False)
        except ValueError as error:  # without the value, because it may be a secret
            wrong[variable] = str(error)
    return values, wrong


def parse_setting(name: str, text: str) -> Any:
    """Parse the value of a setting, as in `%agentbench set name=text`; raises like `configure`."""
    word = text.strip().strip("\"'")
    is_auto = name == "renderer" and word.lower() in ("none", "auto", "")
    return None if is_auto else _check(name, word, strict=False)


def _apply(changed: dict[str, Any]) -> None:
    if (fixed := changed.get("deterministic")) is not None:
        clock, ids = (TickingClock(), CountingIds()) if fixed else (SystemClock(), RandomIds())
        set_runtime_defaults(clock=clock, ids=ids)
    if "observe" in changed:
        set_runtime_defaults(observe=changed["observe"])
    if "loop" in changed and changed["loop"] != "kernel":
        choose_engine_loop("uvloop" if changed["loop"] == "uvloop" else "asyncio")


def _check(name: str, value: Any, *, strict: bool = True) -> Any:
    if name not in _TYPES:
        close = difflib.get_close_matches(name, _TYPES, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        msg = f"There is no setting {name!r}. Settings: {', '.join(_TYPES)}.{hint}"
        raise TypeError(msg)
    if name == "prices":
        return read_prices(value)
    try:
        return _validate(name, value, strict=strict)
    except ValueError as error:
        msg = f"{name}={value!r} is not possible. {error} Nothing was changed."
        raise ValueError(msg) from None


def _validate(name: str, value: Any, *, strict: bool) -> Any:
    """Return the validated value; the error describes the expected values but does not contain the value."""
    from pydantic import PositiveFloat, TypeAdapter, ValidationError

    adapter = TypeAdapter(PositiveFloat if _TYPES[name] is float else _TYPES[name])
    try:
        return adapter.validate_python(value, strict=strict)
    except ValidationError as error:
        raise ValueError(error.errors(include_input=False)[0]["msg"] + ".") from None


def _begin() -> Settings:
    values, wrong = from_environment(os.environ)
    for variable, problem in wrong.items():
        warnings.warn(f"The environment variable {variable} was ignored. {problem}", RuntimeWarning, stacklevel=2)
    try:
        _apply(values)
    except RuntimeError as error:  # the engine is already running with another loop
        values.pop("loop")
        warnings.warn(f"The environment variable AGENTBENCH_LOOP was ignored. {error}", RuntimeWarning, stacklevel=2)
    return Settings(**values)


_current = _begin()
