"""Connections that have become streams of bytes: WebSocket channels, SPDY, and SPDY inside a WebSocket."""
