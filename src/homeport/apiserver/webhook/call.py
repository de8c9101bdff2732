"""The line between webhooks and the wire: who is called, with what, and how a call can fail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class CallFailed(Exception):
    """The webhook gave no usable answer. The text says why, with the address but without the content."""


class AnswerInvalid(CallFailed):
    """There was an answer, but not to this question."""


class Caller(Protocol):
    async def call(self, client: Mapping[str, Any], body: bytes, timeout: float, limit: int) -> bytes:
        """POSTs JSON to the webhook of a `clientConfig`; the answer's body, at most `limit` bytes. Or CallFailed."""
