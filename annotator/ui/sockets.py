"""Small answers leave at once.

Streamlit binds its socket without naming TCP as the protocol, and asyncio then leaves Nagle's algorithm on for every
connection: the second half of a small answer waited for the browser to acknowledge the first, 40 ms on Linux.
"""

import functools
import socket

from streamlit.web.server.starlette import starlette_server


def send_at_once() -> None:
    """Switch Nagle's algorithm off for the connections of the server that is started next."""
    # Not Streamlit's public interface: where a later version has it no more, answers are slower and nothing else.
    bind = getattr(starlette_server, "_bind_socket", None)
    if bind is None or hasattr(bind, "__wrapped__"):
        return

    @functools.wraps(bind)
    def bound(*args: object, **options: object) -> socket.socket:
        listening = bind(*args, **options)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # connections inherit it
        return listening

    starlette_server._bind_socket = bound
