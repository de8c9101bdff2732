"""What the machines of clusters use now, as the metrics-server of each workload cluster measures it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec

from homeport.api.meta import Resource, Unstructured
from homeport.capi.remote import kubeconfig
from homeport.client.config import Config, ConfigError
from homeport.client.errors import ApiError, Forbidden, NotFound, Unavailable
from homeport.client.http import HttpClient
from homeport.client.protocol import Client, Key, Query
from homeport.machinery.quantity import parse_quantity

_SECRET = Resource("", "v1", "Secret", "secrets", True)
_NODE_METRICS = Resource("metrics.k8s.io", "v1beta1", "NodeMetrics", "nodes", False)
_PATIENCE_SECONDS = 10.0
_AT_ONCE = 8


class Usage(msgspec.Struct, frozen=True, rename="camel"):
    """Of one machine, or the sum of several."""

    cpus: float = 0.0
    memory_bytes: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.cpus + other.cpus, self.memory_bytes + other.memory_bytes)


class Measured(msgspec.Struct, frozen=True):
    """One cluster: usage by the name of the Node, or why it is not known."""

    nodes: dict[str, Usage] = {}
    why: str = ""


async def read_usage(client: Client, clusters: Iterable[Key], proxy: str = "") -> dict[Key, Measured]:
    """Asks the clusters at the same time; one that does not answer holds up none of the others."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def read(cluster: Key) -> tuple[Key, Measured]:
        async with slots:
            return cluster, await _measured(client, cluster, proxy)

    return dict(await asyncio.gather(*(read(each) for each in clusters)))


async def _measured(client: Client, cluster: Key, proxy: str) -> Measured:
    key = kubeconfig.secret_key(cluster)
    try:
        secret = await client.get(_SECRET, key)
        config = kubeconfig.parse(kubeconfig.value(secret), where=f"Secret {key}", proxy=proxy)
    except NotFound:
        return Measured(why="it has no kubeconfig yet")
    except Forbidden:
        return Measured(why=f"you may not read Secret {key}")
    except (ApiError, ConfigError) as error:
        return Measured(why=str(error))
    return await _ask(config)


async def _ask(config: Config) -> Measured:
    remote = HttpClient(config)
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            found = (await remote.list(_NODE_METRICS, Query())).items
    except (NotFound, Unavailable):
        # The group is missing, or its APIService leads to no Pod: the cluster itself may still not answer.
        return Measured(why=await _why_without(remote, config))
    except TimeoutError:
        return Measured(why=f"no answer from {config.server} within {_PATIENCE_SECONDS:.0f} s")
    except ApiError as error:
        return Measured(why=str(error))
    finally:
        await remote.close()
    return Measured({each.name: usage_of(each) for each in found})


async def _why_without(remote: HttpClient, config: Config) -> str:
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            await remote.raw("GET", "/version")
    except (ApiError, TimeoutError):
        return f"no answer from {config.server}"
    return "it runs no metrics-server (a ClusterAddon with addon: metrics-server installs it)"


def usage_of(metrics: Unstructured) -> Usage:
    used = metrics.get("usage") or {}
    cpu, memory = (parse_quantity(str(used.get(name) or "0")) for name in ("cpu", "memory"))
    return Usage(float(cpu.amount), memory.value)
