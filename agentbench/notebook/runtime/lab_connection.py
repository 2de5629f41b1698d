"""For the server of JupyterLab, as `agentbench lab` starts it: what a kernel sends reaches the page at once."""

from typing import Any

from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection

__all__ = ["PromptConnection"]


class PromptConnection(ZMQChannelsWebsocketConnection):
    """A connection between a kernel and a page that sends short messages at once.

    Otherwise one waits until the page has confirmed the one before, which takes up to 40 ms: a click on Step leads to
    five short messages.
    """

    def connect(self) -> Any:
        """Connect as usual, without the delay (Nagle's algorithm)."""
        self.websocket_handler.set_nodelay(True)
        return super().connect()
