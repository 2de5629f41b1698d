"""One rule for all limits on counts and times.

A limit is checked where it is passed, and errors name it. `None` means no limit, where that is allowed; 0 means none
at all where that makes sense, and is rejected elsewhere. Negative numbers and booleans are rejected.
"""

from __future__ import annotations


def require_limit(name: str, limit: object, *, least: int = 0, none: str = "") -> None:
    """Check a limit that is a count.

    Args:
        name: Name of the argument.
        limit: Its value, a whole number.
        least: The smallest allowed value.
        none: What `None` means, such as "no limit"; empty if `None` is not allowed.

    Raises:
        TypeError: It is not a whole number.
        ValueError: It is less than `least`.
    """
    if limit is None and none:
        return
    is_whole = hasattr(limit, "__index__") and not isinstance(limit, bool)
    if not is_whole or int(limit) < least:  # type: ignore[call-overload]
        raise _error(name, limit, f"a whole number, {least} or more", none, is_type=is_whole)


def require_seconds(name: str, seconds: object, *, zero: bool = False, none: str = "") -> None:
    """Check a limit in seconds: above 0, or with `zero` also 0; `none` as in `require_limit`.

    Raises:
        TypeError: It is not a number.
        ValueError: It is too small, or `nan`.
    """
    if seconds is None and none:
        return
    from numbers import Real  # noqa: PLC0415 - defines five abstract classes, and few programs set a time limit

    is_number = isinstance(seconds, Real) and not isinstance(seconds, bool)
    if not (is_number and (seconds > 0 or (zero and seconds == 0))):  # type: ignore[operator]
        raise _error(name, seconds, f"seconds, {'0 or more' if zero else 'above 0'}", none, is_type=is_number)


def _error(name: str, value: object, expected: str, none: str, *, is_type: bool) -> Exception:
    text = f"{name} is {value!r}; expected {expected}{none and f', or None for {none}'}."
    return (ValueError if is_type else TypeError)(text)
