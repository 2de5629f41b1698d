"""For the JupyterLab server of `agentbench lab`: messages of a kernel reach the page without delay."""

from typing import Any

from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection


class PromptConnection(ZMQChannelsWebsocketConnection):
    """A connection between a kernel and a page that sends short messages immediately.

    By default a short message waits until the page has confirmed the previous one, which takes up to 40 ms, and a click
    on Step leads to five short messages.
    """

    def connect(self) -> Any:
        """Connect as usual, without the delay (Nagle's algorithm)."""
        self.websocket_handler.set_nodelay(True)
        return super().connect()
