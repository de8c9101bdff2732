"""Names and numbers of the protocols that carry connections to ports of Pods, for both ends of them.

Over a WebSocket every message begins with the number of a channel: for the nth port 2n carries data and 2n+1 errors.
The server's first message on each channel is the port. Over SPDY a pair of streams does the same.
"""

from __future__ import annotations

from typing import Final

CHANNEL: Final = "v4.channel.k8s.io"
CHANNEL_BASE64: Final = "v4.base64.channel.k8s.io"
FORWARD: Final = "portforward.k8s.io"
SPDY: Final = "SPDY/3.1"
TUNNEL: Final = f"{SPDY}+{FORWARD}"

PORT: Final = "port"
REQUEST: Final = "requestid"  # as headers travel in SPDY: in lower case
STREAM_TYPE: Final = "streamtype"
DATA: Final = "data"
ERROR: Final = "error"

MAX_PORTS: Final = 127  # the channel's number is one byte, and 255 is kept free


def parse_port(text: str) -> int:
    """Raises ValueError, which says what a port is."""
    if text.isascii() and text.isdigit() and len(text) <= 5 and 0 < int(text) < 65536:
        return int(text)
    raise ValueError(f"{text!r} is not a valid port: expected a number from 1 to 65535")
