"""What one loop has seen of a Machine: all that its status is computed from."""

from __future__ import annotations

from dataclasses import dataclass, field

from homeport.api.cluster.v1beta2 import Cluster, MachineDeployment, MachineSet
from homeport.api.meta import Unstructured
from homeport.core.related import Related
from homeport.runtime.outcome import Wait


@dataclass(slots=True)
class Connection:
    """How things stand between us and the workload cluster."""

    up: bool = False
    why: str = ""  # why there is none
    last_probe: float | None = None
    since: float | None = None  # how long it has been silent for all we know; None: it was not asked yet


@dataclass(slots=True)
class Observed:
    cluster: Cluster | None = None
    machine_set: MachineSet | None = None
    deployment: MachineDeployment | None = None
    bootstrap: Related = field(default_factory=Related)
    infrastructure: Related = field(default_factory=Related)
    connection: Connection = field(default_factory=Connection)
    node: Unstructured | None = None
    node_trouble: str = ""  # why the Node could not be determined
    deletion: Wait | None = None  # the step of deletion that is waited for
    trouble: tuple[str, str] | None = None  # (reason, message) of an error that ended the loop
