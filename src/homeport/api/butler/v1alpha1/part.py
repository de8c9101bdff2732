"""Parts that several kinds of Butler share: references, sizes, ranges of addresses.

No field of these kinds has a default in its schema. The API server would write it into the stored object, where it
could no longer be told from what the user wrote; `platforms/butler/normal` fills in defaults when an object is read.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from homeport.api.field import Quantity, Time
from homeport.api.meta import Model
from homeport.api.schema import Enum, Pattern, Preserve, Range, Required, Size

GROUP = "butler.butlerlabs.dev"
VERSION = "v1alpha1"

PROVIDER_TYPES = ("harvester", "nutanix", "proxmox", "azure", "aws", "gcp", "local")
ProviderType = Annotated[str, Enum(PROVIDER_TYPES)]
Text = Annotated[str, Size(1, 1024)]
Label = Annotated[str, Size(1, 63), Pattern("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
Release = Annotated[str, Size(1, 64), Pattern(r"^v[0-9]+\.[0-9]+\.[0-9]+$")]
Positive = Annotated[int, Range(1)]
Some = Annotated[int, Range(0)]
Percent = Annotated[int, Range(0, 100)]
# Free text in the schema, so that a wrong one is refused with an explanation and not with a regular expression.
Address = Annotated[str, Size(1, 64)]
AddressRange = Annotated[str, Size(1, 128)]
Values = Annotated[dict[str, Any], Preserve()]
Block = Annotated[dict[str, Any], Preserve()]


class LocalRef(Model):
    """Reference to an object by its name."""

    name: Required[Text] = ""


class ProviderRef(Model):
    """A ProviderConfig, by its name and optionally its namespace."""

    name: Required[Text] = ""
    namespace: str = ""


class NamespacedRef(Model):
    """An object, by its name and namespace."""

    name: Required[Text] = ""
    namespace: Required[Text] = ""


class SecretRef(Model):
    """A Secret, by its name and optionally its namespace and key."""

    name: Required[Text] = ""
    namespace: str = ""
    key: str = ""


class Pool(Model):
    """A range of addresses, from its first to its last one."""

    start: Required[Address] = ""
    end: Required[Address] = ""


class PlatformPart(Model):
    """Addresses for the platform, in the short form."""

    metallb_pool: AddressRange = msgspec.field(default="", name="metalLBPool")


class ExtraDisk(Model):
    """A further disk of a machine."""

    size_gb: Required[Positive] = msgspec.field(default=0, name="sizeGB")
    storage_class: str = ""


class Amounts(Model):
    """CPU and memory of a container."""

    cpu: Quantity = ""
    memory: Quantity = ""


class Resources(Model):
    """Requests and limits of one program of a control plane."""

    requests: Amounts = msgspec.field(default_factory=Amounts)
    limits: Amounts = msgspec.field(default_factory=Amounts)


class ControlPlaneResources(Model):
    """Requests and limits of the programs of a hosted control plane."""

    api_server: Resources | None = None
    controller_manager: Resources | None = None
    scheduler: Resources | None = None
    konnectivity: Resources | None = None


class Exposure(Model):
    """How API servers of tenant clusters are reached."""

    mode: Annotated[str, Enum(("LoadBalancer", "Ingress", "Gateway"))] = ""
    hostname: str = ""
    ingress_class_name: str = ""
    controller_type: Annotated[str, Enum(("haproxy", "nginx", "traefik", "generic"))] = ""
    gateway_ref: str = ""


class ClusterDefaults(Model):
    """Values for tenant clusters that do not set them."""

    kubernetes_version: str = ""
    worker_count: Some | None = None
    worker_cpu: Positive | None = msgspec.field(default=None, name="workerCPU")
    worker_memory_gi: Positive | None = None
    worker_disk_gi: Annotated[int, Range(10)] | None = None
    default_addons: list[str] = []


class HelmReleaseStatus(Model):
    """The Helm release of an add-on."""

    name: str = ""
    namespace: str = ""
    version: str = ""
    revision: int = 0
    status: str = ""


class Failure(Model):
    """What several kinds report of their last error."""

    failure_reason: str = ""
    failure_message: str = ""
    last_updated: Time | None = None
