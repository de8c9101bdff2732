"""A call to etcd over gRPC, for the control planes that ask it."""

from __future__ import annotations

from typing import Protocol

from homeport.machinery.protowire import Value, parse


class Caller(Protocol):
    """Unary gRPC calls: capi.remote.grpc.Channel."""

    async def call(self, path: str, request: bytes) -> bytes: ...

    async def close(self) -> None: ...


async def call_etcd(caller: Caller, method: str, request: bytes) -> dict[int, list[Value]]:
    """The fields of the response. ConnectionError if it can't be parsed."""
    raw = await caller.call(f"/etcdserverpb.{method}", request)
    try:
        return parse(raw)
    except ValueError as broken:
        raise ConnectionError(f"etcd's response to {method} can't be parsed: {broken}") from broken
