"""The contract between Cluster API and its providers. No other file spells a path of a provider's object.

Accessors take the object and, where the contracts differ, the contract. `resolution` says which one a kind follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from homeport.capi import version as versions
from homeport.capi.name import Reason
from homeport.machinery.condition import Condition

Contract = Literal["v1beta1", "v1beta2"]


class Endpoint(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class FailureDomain(NamedTuple):
    name: str
    control_plane: bool = False
    attributes: Mapping[str, str] = {}


class Failure(NamedTuple):
    """A terminal failure, which only the old contract knows."""

    reason: str
    message: str


class StatusVersion(NamedTuple):
    version: str
    replicas: int | None = None


def value_at(obj: Mapping[str, Any] | None, *path: str) -> Any:
    """The value at a path, None when it or anything above it is missing."""
    value: Any = obj
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def _text(obj: Mapping[str, Any], *path: str) -> str:
    value = value_at(obj, *path)
    return value if isinstance(value, str) else ""


def _number(obj: Mapping[str, Any], *path: str) -> int | None:
    value = value_at(obj, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def conditions(obj: Mapping[str, Any]) -> list[Condition]:
    """An object's conditions in the metav1 form, whichever of the three layouts it has."""
    return [_converted(c) for c in _listed(obj) if _usable(c)]


def _listed(obj: Mapping[str, Any]) -> list[Any]:
    found = value_at(obj, "status", "v1beta2", "conditions")
    if not isinstance(found, list):
        found = value_at(obj, "status", "conditions")
    return found if isinstance(found, list) else []


def _usable(found: Any) -> bool:
    return isinstance(found, dict) and bool(found.get("type")) and found.get("status") in ("True", "False", "Unknown")


def _converted(found: Mapping[str, Any]) -> Condition:
    """Old conditions have a severity, and no reason while they are True."""
    made: Condition = {
        "type": found["type"],
        "status": found["status"],
        "reason": found.get("reason") or Reason.NO_REASON_REPORTED,
        "message": found.get("message") or "",
    }
    if found.get("lastTransitionTime"):
        made["lastTransitionTime"] = found["lastTransitionTime"]
    if found.get("observedGeneration") is not None:
        made["observedGeneration"] = found["observedGeneration"]
    return made


def _condition(obj: Mapping[str, Any], kind: str) -> Condition | None:
    return next((_converted(c) for c in _listed(obj) if _usable(c) and c["type"] == kind), None)


def failure(obj: Mapping[str, Any]) -> Failure | None:
    reason, message = _text(obj, "status", "failureReason"), _text(obj, "status", "failureMessage")
    return Failure(reason, message) if reason or message else None


def endpoint(obj: Mapping[str, Any]) -> Endpoint | None:
    """`spec.controlPlaneEndpoint`, once both parts are known."""
    host = _text(obj, "spec", "controlPlaneEndpoint", "host")
    port = _number(obj, "spec", "controlPlaneEndpoint", "port")
    return Endpoint(host, port) if host and port else None


# -- kinds -----------------------------------------------------------------------------------------------------------


class _Part:
    """What all providers report about their objects."""

    READY = "Ready"

    failure = staticmethod(failure)

    @staticmethod
    def ready(obj: Mapping[str, Any], contract: Contract = "v1beta2") -> Condition | None:
        return _condition(obj, "Ready")


class _Infrastructure(_Part):
    @staticmethod
    def provisioned(obj: Mapping[str, Any], contract: Contract) -> bool:
        path = ("ready",) if contract == "v1beta1" else ("initialization", "provisioned")
        return value_at(obj, "status", *path) is True


class infra_cluster(_Infrastructure):  # noqa: N801  (reads as a module: infra_cluster.endpoint(obj))
    """The infrastructure of a cluster: network, load balancer."""

    endpoint = staticmethod(endpoint)

    @staticmethod
    def condition(obj: Mapping[str, Any], kind: str) -> Condition | None:
        """One of the optional ones: InfrastructureReachable, NoOrphanedMachines."""
        return _condition(obj, kind)

    @staticmethod
    def failure_domains(obj: Mapping[str, Any], contract: Contract) -> list[FailureDomain]:
        """By name, so that copies of it do not change without a cause."""
        found = value_at(obj, "status", "failureDomains")
        if contract == "v1beta1" and isinstance(found, Mapping):
            named = [(str(name), each) for name, each in found.items()]
        elif isinstance(found, list):
            named = [(_text(each, "name"), each) for each in found if isinstance(each, Mapping)]
        else:
            return []
        made = [
            FailureDomain(name, value_at(each, "controlPlane") is True, dict(value_at(each, "attributes") or {}))
            for name, each in named
            if name
        ]
        return sorted(made, key=lambda domain: domain.name)


class infra_machine(_Infrastructure):  # noqa: N801
    """The infrastructure of a machine: a VM."""

    @staticmethod
    def provider_id(obj: Mapping[str, Any]) -> str:
        return _text(obj, "spec", "providerID")

    @staticmethod
    def failure_domain(obj: Mapping[str, Any], contract: Contract) -> str:
        """Where it runs. Providers say it the old way or the new one, whatever contract they follow."""
        said, wanted = _text(obj, "status", "failureDomain"), _text(obj, "spec", "failureDomain")
        return (wanted or said) if contract == "v1beta1" else (said or wanted)

    @staticmethod
    def addresses(obj: Mapping[str, Any]) -> list[dict[str, str]]:
        found = value_at(obj, "status", "addresses")
        if not isinstance(found, list):
            return []
        return [
            {"type": a["type"], "address": a["address"]}
            for a in found
            if value_at(a, "type") and value_at(a, "address")
        ]

    @staticmethod
    def interruptible(obj: Mapping[str, Any]) -> bool:
        return value_at(obj, "status", "interruptible") is True


class infra_template:  # noqa: N801
    """A template of infrastructure machines."""

    @staticmethod
    def template(obj: Mapping[str, Any]) -> dict[str, Any]:
        """`{metadata, spec}` of the objects made from it; bootstrap and control plane templates have the same form."""
        found = value_at(obj, "spec", "template")
        return {"metadata": dict(value_at(found, "metadata") or {}), "spec": dict(value_at(found, "spec") or {})}

    @staticmethod
    def capacity(obj: Mapping[str, Any]) -> dict[str, Any]:
        """What a machine made from it will offer, for autoscalers that start from nothing."""
        return dict(value_at(obj, "status", "capacity") or {})

    @staticmethod
    def node_info(obj: Mapping[str, Any]) -> dict[str, str]:
        return dict(value_at(obj, "status", "nodeInfo") or {})


class bootstrap(_Part):  # noqa: N801
    """What makes a machine a node."""

    @staticmethod
    def data_secret_name(obj: Mapping[str, Any]) -> str:
        return _text(obj, "status", "dataSecretName")

    @staticmethod
    def created(obj: Mapping[str, Any], contract: Contract) -> bool:
        path = ("ready",) if contract == "v1beta1" else ("initialization", "dataSecretCreated")
        return value_at(obj, "status", *path) is True


class control_plane:  # noqa: N801
    """The control plane of a cluster."""

    endpoint = staticmethod(endpoint)
    failure = staticmethod(failure)

    @staticmethod
    def initialized(obj: Mapping[str, Any], contract: Contract) -> bool:
        path = ("initialized",) if contract == "v1beta1" else ("initialization", "controlPlaneInitialized")
        return value_at(obj, "status", *path) is True

    @staticmethod
    def available(obj: Mapping[str, Any], contract: Contract) -> Condition | None:
        """The old contract has Ready for it."""
        found = _condition(obj, "Available")
        return _condition(obj, "Ready") if found is None and contract == "v1beta1" else found

    @staticmethod
    def condition(obj: Mapping[str, Any], kind: str) -> Condition | None:
        """One of the optional ones: RollingOut, ScalingUp, ScalingDown, Remediating, MachinesReady, ..."""
        return _condition(obj, kind)

    @staticmethod
    def external(obj: Mapping[str, Any]) -> bool:
        """It has no Machines: somebody runs it as a service."""
        return value_at(obj, "status", "externalManagedControlPlane") is True

    @staticmethod
    def replicas(obj: Mapping[str, Any]) -> int | None:
        """How many are wanted; None: it does not count in replicas."""
        return _number(obj, "spec", "replicas")

    @staticmethod
    def status_replicas(obj: Mapping[str, Any], contract: Contract = "v1beta2") -> int | None:
        return _number(obj, "status", "replicas")

    @staticmethod
    def ready_replicas(obj: Mapping[str, Any], contract: Contract = "v1beta2") -> int | None:
        return _number(obj, "status", "readyReplicas")

    @staticmethod
    def available_replicas(obj: Mapping[str, Any], contract: Contract) -> int | None:
        """The old contract counts those that are not, of those that are wanted."""
        if contract == "v1beta2":
            return _number(obj, "status", "availableReplicas")
        wanted, missing = _number(obj, "spec", "replicas"), _number(obj, "status", "unavailableReplicas")
        return None if wanted is None or missing is None else max(0, wanted - missing)

    @staticmethod
    def up_to_date_replicas(obj: Mapping[str, Any], contract: Contract) -> int | None:
        return _number(obj, "status", "updatedReplicas" if contract == "v1beta1" else "upToDateReplicas")

    @staticmethod
    def selector(obj: Mapping[str, Any]) -> str:
        return _text(obj, "status", "selector")

    @staticmethod
    def version(obj: Mapping[str, Any]) -> str:
        return _text(obj, "spec", "version")

    @staticmethod
    def status_versions(obj: Mapping[str, Any], contract: Contract = "v1beta2") -> list[StatusVersion]:
        """What runs, oldest first; a single one where the provider knows no more."""
        found = value_at(obj, "status", "versions")
        if isinstance(found, list) and found:
            return [StatusVersion(v["version"], _number(v, "replicas")) for v in found if value_at(v, "version")]
        single = _text(obj, "status", "version")
        return [StatusVersion(single)] if single else []

    @staticmethod
    def machine_template(obj: Mapping[str, Any]) -> dict[str, Any]:
        return dict(value_at(obj, "spec", "machineTemplate") or {})

    @staticmethod
    def infrastructure_ref(obj: Mapping[str, Any], contract: Contract) -> dict[str, Any] | None:
        """The template of its machines: `{apiGroup, kind, name}`, or an old object reference with apiVersion.

        Talos has it at a place of its own, and k0s at the old one in every version.
        """
        paths = (
            [("infrastructureRef",)]
            if contract == "v1beta1"
            else [("spec", "infrastructureRef"), ("infrastructureRef",)]
        )
        places = [*(("machineTemplate", *path) for path in paths), ("infrastructureTemplate",)]
        found = next((held for place in places if (held := value_at(obj, "spec", *place))), None)
        return dict(found) if isinstance(found, Mapping) else None

    @classmethod
    def is_provisioning(cls, obj: Mapping[str, Any], contract: Contract = "v1beta2") -> bool:
        """Being made for the first time."""
        return bool(cls.version(obj)) and not cls.status_versions(obj, contract)

    @classmethod
    def is_upgrading(cls, obj: Mapping[str, Any], contract: Contract = "v1beta2") -> bool:
        """Some of it runs an older version than wanted. Raises ValueError for what is no version."""
        wanted = cls.version(obj)
        if not wanted:
            return False
        goal = versions.parse(wanted)
        return any(versions.parse(v.version).build_key < goal.build_key for v in cls.status_versions(obj, contract))
