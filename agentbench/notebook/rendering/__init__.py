"""Graphs as DOT text, and DOT text as pictures."""

import warnings

from agentbench.notebook.rendering.renderers import render_dot

__all__ = ["render"]


def render(dot: str, format: str) -> bytes:  # noqa: A002 - the engine's exports call it by this name
    """Turn DOT text into a picture, with the configured renderer or the first that is there.

    Args:
        dot: The text.
        format: `svg`, `png` or `pdf`. SVG comes without scripts, links and comments.

    Raises:
        RendererUnavailable: The configured renderer is not installed.
        RenderFailed: It failed, or none that is there writes this format.

    Warns:
        RuntimeWarning: If the renderer failed and the built-in one drew instead.
    """
    rendered = render_dot(dot, format)
    if rendered.problem is not None:
        warnings.warn(str(rendered.problem), RuntimeWarning, stacklevel=2)
    return rendered.data
