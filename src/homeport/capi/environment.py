"""Where an installed part runs: what it may need besides its manager."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from homeport.apiserver.embedded import EmbeddedServer
from homeport.capi.chartsettings import OWN_ADDRESSES, ChartSettings
from homeport.capi.rehearsal import Rehearsal
from homeport.client.dial import DIRECT, DialOptions
from homeport.client.protocol import Client
from homeport.runtime.workload.ranges import ServiceRanges
from homeport.runtime.workload.runner import Runners


class PrepareError(Exception):
    """A cluster can't have the platform; the text says why and what to do."""


# Brings the definitions and namespaces of this plane into another cluster. Raises PrepareError and ApiError; repeat it
# after that.
Prepare = Callable[[Client], Awaitable[None]]


class BackupError(Exception):
    """A backup can't be written; the text says why and what to do."""


class Backups(Protocol):
    """Archives of the whole plane, each with a name."""

    @property
    def folder(self) -> Path: ...
    async def names(self) -> list[str]: ...
    async def write(self, name: str) -> None:
        """Raises BackupError."""

    async def delete(self, name: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Environment:
    """`server` is None where the controllers run on a cluster of others, and in workers of a plane.

    `dial` is how addresses of manifests are dialled: hand it to every client of a hypervisor or workload cluster.
    """

    client: Client
    dial: DialOptions = DIRECT
    server: EmbeddedServer | None = None
    worker: bool = False  # the embedded server runs in another process, whose controllers we are
    in_cluster: bool = False  # we are a Pod of the cluster: it runs images, and names of its Services lead to them
    charts: ChartSettings = OWN_ADDRESSES
    runners: Runners | None = None  # what can run Pods of the embedded server; None: nothing here
    # Addresses for Services of the embedded server that name one of them: parts of the plane fill it.
    ranges: ServiceRanges = field(default_factory=ServiceRanges)
    images: Path | None = None  # folder of files that may be uploaded to providers; None: none may
    ccm_image: str = ""  # of the cloud controller manager in workload clusters; '': the one of this release
    backups: Backups | None = None  # None: this plane can't be backed up from inside
    prepare: Prepare | None = None  # None: this plane is not meant to be brought elsewhere
    rehearsal: Rehearsal | None = None  # stands in for the world outside the API; None: the real one

    @property
    def embedded(self) -> bool:
        """Whether the API server is that of a plane, and not another Kubernetes."""
        return self.server is not None or self.worker
