"""The contract between Cluster API and its providers. No other file spells a path of a foreign kind's object.

A provider says on its CRDs, by label, which of their versions follow which contract. Two are understood: v1beta2, and
v1beta1 for providers that are not there yet. Accessors take the object and, where the contracts differ, the contract.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol

from homeport.api.meta import Resource
from homeport.capi import version as versions
from homeport.capi.name import CONTRACT_LABEL_PREFIX, Reason
from homeport.client.protocol import Key
from homeport.machinery.condition import Condition
from homeport.machinery.gvk import version_order
from homeport.runtime.informer import Informers, metadata_only

Contract = Literal["v1beta1", "v1beta2"]
CONTRACTS: tuple[Contract, ...] = ("v1beta2", "v1beta1")  # the best first

CRD = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)


class Reference(Protocol):
    """A ContractRef: a kind without its version, and a name in the namespace of whoever refers."""

    @property
    def api_group(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> str: ...


class ResolvedResource(NamedTuple):
    """Where objects of a foreign kind are read and written, and what they promise."""

    resource: Resource
    contract: Contract


class NotInstalled(Exception):
    """A kind that is referred to is not served, or its CRD names no contract that we know.

    `defined`: the CRD exists, so there may be objects of the kind.
    """

    def __init__(self, message: str, *, defined: bool = False) -> None:
        super().__init__(message)
        self.defined = defined


def plural(kind: str) -> str:
    """The plural by which a CRD of the contract must be named."""
    word = kind.lower()
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


class Contracts:
    """Which version of a foreign kind to use. Fed by a watch of the CRDs' metadata."""

    def __init__(self, informers: Informers) -> None:
        self.informer = informers.get(metadata_only(CRD))

    def find(self, group: str, kind: str) -> ResolvedResource | None:
        """None: not installed, or without a contract that we know."""
        definition = self.informer.cache.get(Key("", f"{plural(kind)}.{group}"))
        return None if definition is None else pick(definition.metadata.labels, group, kind)

    def resolve(self, ref: Reference) -> ResolvedResource:
        """Raises NotInstalled."""
        found = self.find(ref.api_group, ref.kind)
        if found is not None:
            return found
        name = f"{plural(ref.kind)}.{ref.api_group}"
        if Key("", name) in self.informer.cache:
            raise NotInstalled(
                f"the CRD {name} has no label {CONTRACT_LABEL_PREFIX}v1beta2 or {CONTRACT_LABEL_PREFIX}v1beta1, so "
                f"{ref.kind} {ref.name!r} can't be used: install a version of the provider that follows the contract",
                defined=True,
            )
        raise NotInstalled(
            f"kind {ref.kind} of group {ref.api_group} is not installed (no CRD {name}): install its provider, or "
            f"correct the reference to {ref.name!r}"
        )


def pick(labels: Mapping[str, str], group: str, kind: str) -> ResolvedResource | None:
    """The newest version of the newest contract that a CRD's labels name."""
    for contract in CONTRACTS:
        listed = labels.get(CONTRACT_LABEL_PREFIX + contract, "")
        if listed.strip("_"):
            return _served(listed, contract, group, kind)
    return None


@functools.lru_cache(maxsize=256)
def _served(listed: str, contract: Contract, group: str, kind: str) -> ResolvedResource:
    """Asked for in every loop; the labels of CRDs hardly ever change."""
    newest = min((version for version in listed.split("_") if version), key=version_order)
    return ResolvedResource(Resource(group, newest, kind, plural(kind)), contract)


# -- values ----------------------------------------------------------------------------------------------------------


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


def at(obj: Mapping[str, Any] | None, *path: str) -> Any:
    """The value at a path, None when it or anything above it is missing."""
    value: Any = obj
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def _text(obj: Mapping[str, Any], *path: str) -> str:
    value = at(obj, *path)
    return value if isinstance(value, str) else ""


def _number(obj: Mapping[str, Any], *path: str) -> int | None:
    value = at(obj, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def conditions(obj: Mapping[str, Any]) -> list[Condition]:
    """An object's conditions in the metav1 form, whichever of the three layouts it has."""
    return [_converted(c) for c in _listed(obj) if _usable(c)]


def _listed(obj: Mapping[str, Any]) -> list[Any]:
    found = at(obj, "status", "v1beta2", "conditions")
    if not isinstance(found, list):
        found = at(obj, "status", "conditions")
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


def _provisioned(obj: Mapping[str, Any], contract: Contract) -> bool:
    path = ("ready",) if contract == "v1beta1" else ("initialization", "provisioned")
    return at(obj, "status", *path) is True


# -- kinds -----------------------------------------------------------------------------------------------------------


class infra_cluster:  # noqa: N801  (reads as a module: infra_cluster.endpoint(obj))
    """The infrastructure of a cluster: network, load balancer."""

    READY = "Ready"

    endpoint = staticmethod(endpoint)
    failure = staticmethod(failure)

    @staticmethod
    def provisioned(obj: Mapping[str, Any], contract: Contract) -> bool:
        return _provisioned(obj, contract)

    @staticmethod
    def ready(obj: Mapping[str, Any], contract: Contract = "v1beta2") -> Condition | None:
        return _condition(obj, "Ready")

    @staticmethod
    def condition(obj: Mapping[str, Any], kind: str) -> Condition | None:
        """One of the optional ones: InfrastructureReachable, NoOrphanedMachines."""
        return _condition(obj, kind)

    @staticmethod
    def failure_domains(obj: Mapping[str, Any], contract: Contract) -> list[FailureDomain]:
        """By name, so that copies of it do not change without a cause."""
        found = at(obj, "status", "failureDomains")
        if contract == "v1beta1" and isinstance(found, Mapping):
            named = [(str(name), each) for name, each in found.items()]
        elif isinstance(found, list):
            named = [(_text(each, "name"), each) for each in found if isinstance(each, Mapping)]
        else:
            return []
        made = [
            FailureDomain(name, at(each, "controlPlane") is True, dict(at(each, "attributes") or {}))
            for name, each in named
            if name
        ]
        return sorted(made, key=lambda domain: domain.name)


class infra_machine:  # noqa: N801
    """The infrastructure of a machine: a VM."""

    READY = "Ready"

    failure = staticmethod(failure)

    @staticmethod
    def provider_id(obj: Mapping[str, Any]) -> str:
        return _text(obj, "spec", "providerID")

    @staticmethod
    def provisioned(obj: Mapping[str, Any], contract: Contract) -> bool:
        return _provisioned(obj, contract)

    @staticmethod
    def ready(obj: Mapping[str, Any], contract: Contract = "v1beta2") -> Condition | None:
        return _condition(obj, "Ready")

    @staticmethod
    def failure_domain(obj: Mapping[str, Any], contract: Contract) -> str:
        """Where it runs. Providers say it the old way or the new one, whatever contract they follow."""
        said, wanted = _text(obj, "status", "failureDomain"), _text(obj, "spec", "failureDomain")
        return (wanted or said) if contract == "v1beta1" else (said or wanted)

    @staticmethod
    def addresses(obj: Mapping[str, Any]) -> list[dict[str, str]]:
        found = at(obj, "status", "addresses")
        if not isinstance(found, list):
            return []
        return [{"type": a["type"], "address": a["address"]} for a in found if at(a, "type") and at(a, "address")]

    @staticmethod
    def interruptible(obj: Mapping[str, Any]) -> bool:
        return at(obj, "status", "interruptible") is True


class infra_template:  # noqa: N801
    """A template of infrastructure machines."""

    @staticmethod
    def template(obj: Mapping[str, Any]) -> dict[str, Any]:
        """`{metadata, spec}` of the objects made from it; bootstrap and control plane templates have the same form."""
        found = at(obj, "spec", "template")
        return {"metadata": dict(at(found, "metadata") or {}), "spec": dict(at(found, "spec") or {})}

    @staticmethod
    def capacity(obj: Mapping[str, Any]) -> dict[str, Any]:
        """What a machine made from it will offer, for autoscalers that start from nothing."""
        return dict(at(obj, "status", "capacity") or {})

    @staticmethod
    def node_info(obj: Mapping[str, Any]) -> dict[str, str]:
        return dict(at(obj, "status", "nodeInfo") or {})


class bootstrap:  # noqa: N801
    """What makes a machine a node."""

    READY = "Ready"

    failure = staticmethod(failure)

    @staticmethod
    def data_secret_name(obj: Mapping[str, Any]) -> str:
        return _text(obj, "status", "dataSecretName")

    @staticmethod
    def created(obj: Mapping[str, Any], contract: Contract) -> bool:
        path = ("ready",) if contract == "v1beta1" else ("initialization", "dataSecretCreated")
        return at(obj, "status", *path) is True

    @staticmethod
    def ready(obj: Mapping[str, Any], contract: Contract = "v1beta2") -> Condition | None:
        return _condition(obj, "Ready")


class control_plane:  # noqa: N801
    """The control plane of a cluster."""

    endpoint = staticmethod(endpoint)
    failure = staticmethod(failure)

    @staticmethod
    def initialized(obj: Mapping[str, Any], contract: Contract) -> bool:
        path = ("initialized",) if contract == "v1beta1" else ("initialization", "controlPlaneInitialized")
        return at(obj, "status", *path) is True

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
        return at(obj, "status", "externalManagedControlPlane") is True

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
        found = at(obj, "status", "versions")
        if isinstance(found, list) and found:
            return [StatusVersion(v["version"], _number(v, "replicas")) for v in found if at(v, "version")]
        single = _text(obj, "status", "version")
        return [StatusVersion(single)] if single else []

    @staticmethod
    def machine_template(obj: Mapping[str, Any]) -> dict[str, Any]:
        return dict(at(obj, "spec", "machineTemplate") or {})

    @staticmethod
    def infrastructure_ref(obj: Mapping[str, Any], contract: Contract) -> dict[str, Any] | None:
        """The template of its machines: `{apiGroup, kind, name}`, or an old object reference with apiVersion.

        Talos has it at a place of its own.
        """
        path = ("infrastructureRef",) if contract == "v1beta1" else ("spec", "infrastructureRef")
        found = at(obj, "spec", "machineTemplate", *path) or at(obj, "spec", "infrastructureTemplate")
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
