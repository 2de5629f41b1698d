"""Names of test cases that are the same in every process, so that several can share one run."""

import re

_ADDRESS = re.compile(r"(?i) at 0x[0-9a-f]+")


def steady(value: object) -> str:
    """The `repr` of a value without addresses."""
    return _ADDRESS.sub("", repr(value))
