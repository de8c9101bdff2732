"""Where an installed part runs: what it may need besides its manager."""

from __future__ import annotations

from dataclasses import dataclass

from homeport.apiserver.embedded import EmbeddedServer
from homeport.client.dial import DIRECT, DialOptions
from homeport.client.protocol import Client


@dataclass(frozen=True, slots=True)
class Environment:
    """`server` is None where the controllers run on a cluster of others.

    `dial` is how addresses of manifests are dialled: hand it to every client of a hypervisor or workload cluster.
    """

    client: Client
    dial: DialOptions = DIRECT
    server: EmbeddedServer | None = None
    ccm_image: str = ""  # of the cloud controller manager in workload clusters; '': the one of this release
