"""Where charts of extensions come from: repositories and registries, reached from the leading controller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from homeport.sim.machine.workload.kind import Json
from homeport.sim.registry.server import ChartRegistry
from homeport.sim.registry.shelf import PublishedChart

if TYPE_CHECKING:
    from homeport.sim.machine.workload.k0s.platform import Platform


@dataclass(frozen=True, slots=True)
class Repository:
    name: str
    url: str

    @classmethod
    def of(cls, given: Json) -> Repository:
        return cls(str(given["name"]), str(given["url"]))


def fetch(platform: Platform, spec: Json, repositories: dict[str, Repository]) -> PublishedChart:
    """The chart that a Chart object names. Raises OSError, LookupError, ValueError."""
    name = str(spec.get("chartName") or "")
    if name.startswith("oci://"):
        url, _, chart = name.rstrip("/").rpartition("/")
    else:
        url, chart = _repository_of(name, spec, repositories)
    registry = _reach(platform, url)
    return registry.shelf.pick(url, chart, str(spec.get("version") or ""))


def _repository_of(name: str, spec: Json, repositories: dict[str, Repository]) -> tuple[str, str]:
    given = str((spec.get("repository") or {}).get("url") or "")
    if name.startswith(("/", ".")):
        raise ValueError(f"chart {name}: charts from the controller's disk are not simulated")
    first, slash, chart = name.partition("/")
    if given:
        return given, chart or first
    if not slash:
        raise ValueError(f"invalid chart name \"{name}\": expected format 'repository/chart' for non-OCI charts")
    if first not in repositories:
        raise LookupError(f"repository '{first}' not found in cluster configuration")
    return repositories[first].url, chart


def _reach(platform: Platform, url: str) -> ChartRegistry:
    """What answers there. Raises OSError in the words of Helm."""
    leader = platform.leader()
    assert leader is not None
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or (80 if parts.scheme == "http" else 443)
    what = f'looks like "{url}" is not a valid chart repository or cannot be reached'
    try:
        leader.host.reach(url.replace("oci://", "https://"))
        service = platform.cluster.network.find(leader.host.guest.host.name, host, port)[2]
    except OSError as error:
        raise OSError(f'{what}: Get "{url}": {error.strerror or error}') from error
    if not isinstance(service, ChartRegistry):
        raise OSError(f"{what}: it answers with something else")
    return service
