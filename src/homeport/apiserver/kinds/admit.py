"""What kube-apiserver's admission plugins add to built-in kinds: tolerations, priorities, default classes, requesters.

LimitRange and ResourceQuota are kept and shown, but nothing is held to them.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator

import orjson

from homeport.apiserver.auth.decision import refusal
from homeport.apiserver.kinds.cluster.certificate import record_requester
from homeport.apiserver.kinds.cluster.node import taint_new
from homeport.apiserver.kinds.cluster.storage import ATTRIBUTES_PROTECTION, CLAIM_PROTECTION, VOLUME_PROTECTION
from homeport.apiserver.kinds.pod.runtimeclass import RuntimeClasses
from homeport.apiserver.resource import Json
from homeport.apiserver.verb.admission import CREATE, WRITES, Admission, Attributes
from homeport.store import Store

_TOLERATED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_PRIORITIES = "priorityclasses.scheduling.k8s.io"
_STORAGE = "storageclasses.storage.k8s.io"
_INGRESSES = "ingressclasses.networking.k8s.io"
_DEFAULT_STORAGE = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
_DEFAULT_INGRESS = ("ingressclass.kubernetes.io/is-default-class",)


def install(admission: Admission, store: Store) -> None:
    defaults = _Defaults(store)
    admission.on("", "pods", tolerate, WRITES, mutating=True)
    admission.on("", "pods", defaults.prioritise, (CREATE,), mutating=True)
    admission.on("", "pods", RuntimeClasses(store).admit, (CREATE,), mutating=True)
    admission.on("", "persistentvolumeclaims", defaults.choose_storage, (CREATE,), mutating=True)
    admission.on("", "persistentvolumeclaims", protect(CLAIM_PROTECTION), (CREATE,), mutating=True)
    admission.on("", "persistentvolumes", protect(VOLUME_PROTECTION), (CREATE,), mutating=True)
    attributes = protect(ATTRIBUTES_PROTECTION)
    admission.on("storage.k8s.io", "volumeattributesclasses", attributes, (CREATE,), mutating=True)
    admission.on("", "nodes", taint_new, (CREATE,), mutating=True)
    admission.on("", "secrets", warn_about_pair, WRITES)
    admission.on("", "services", warn_about_addresses, WRITES)
    admission.on("networking.k8s.io", "ingresses", defaults.choose_ingress, (CREATE,), mutating=True)
    admission.on("certificates.k8s.io", "certificatesigningrequests", record_requester, (CREATE,), mutating=True)


def tolerate(attributes: Attributes) -> None:
    """A Pod stays five minutes on a node that is in trouble, unless it says otherwise."""
    spec = _spec(attributes)
    given = spec.get("tolerations") or []
    missing = [key for key in _TOLERATED if not any(_covers(toleration, key) for toleration in given)]
    if missing:
        added = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        spec["tolerations"] = [*given, *({"key": key, **added} for key in missing)]


def protect(finalizer: str) -> Callable[[Attributes], None]:
    def hook(attributes: Attributes) -> None:
        assert attributes.object is not None
        meta = attributes.object["metadata"]
        given = meta.get("finalizers") or []
        if finalizer not in given:
            meta["finalizers"] = [*given, finalizer]

    return hook


def warn_about_pair(attributes: Attributes) -> None:
    """Accepts a TLS Secret with any content, but warns if its certificate or key is not PEM."""
    obj = attributes.object or {}
    if obj.get("type") != "kubernetes.io/tls":
        return
    for key, what in (("tls.crt", "certificate"), ("tls.key", "key")):
        if b"-----BEGIN" not in base64.b64decode((obj.get("data") or {}).get(key, "")):
            attributes.ctx.warn(f"tls: failed to find any PEM data in {what} input")
            return


def warn_about_addresses(attributes: Attributes) -> None:
    if ((attributes.object or {}).get("spec") or {}).get("externalIPs"):
        attributes.ctx.warn("spec.externalIPs is deprecated and may no longer be implemented in some clusters")


def _covers(toleration: Json, key: str) -> bool:
    return toleration.get("key") in (None, "", key) and toleration.get("effect") in (None, "", "NoExecute")


def _spec(attributes: Attributes) -> Json:
    assert attributes.object is not None
    spec: Json = attributes.object.setdefault("spec", {})
    return spec


def _name(attributes: Attributes) -> str:
    assert attributes.object is not None
    return attributes.name or str(attributes.object["metadata"].get("name", ""))


class _Defaults:
    """Choices that depend on what is in the store. The kinds asked have few objects."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def _all(self, bucket: str) -> Iterator[Json]:
        for record in self._store.range(bucket):
            yield orjson.loads(record.value)

    def prioritise(self, attributes: Attributes) -> None:
        spec = _spec(attributes)
        name = spec.get("priorityClassName", "")
        found = self._priority(name)
        if name and found is None:
            raise refusal("", "pods", _name(attributes), f"no PriorityClass with name {name} was found")
        if found is not None:
            spec["priorityClassName"] = found["metadata"]["name"]
        value = (found or {}).get("value", 0)
        if spec.get("priority", value) != value:
            why = (
                f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
                f"priority admission controller computed {value} from the given PriorityClass name"
            )
            raise refusal("", "pods", _name(attributes), why)
        spec["priority"] = value
        spec.setdefault("preemptionPolicy", (found or {}).get("preemptionPolicy", "PreemptLowerPriority"))

    def _priority(self, name: str) -> Json | None:
        if name:
            record = self._store.get(_PRIORITIES, name)
            found: Json | None = None if record is None else orjson.loads(record.value)
            return found
        defaults = [found for found in self._all(_PRIORITIES) if found.get("globalDefault")]
        return min(defaults, key=lambda found: int(found.get("value", 0)), default=None)

    def choose_storage(self, attributes: Attributes) -> None:
        spec = _spec(attributes)
        if spec.get("storageClassName") is None and (name := self._class(_STORAGE, _DEFAULT_STORAGE)):
            spec["storageClassName"] = name

    def choose_ingress(self, attributes: Attributes) -> None:
        assert attributes.object is not None
        annotations = attributes.object["metadata"].get("annotations") or {}
        spec = _spec(attributes)
        if spec.get("ingressClassName") is not None or "kubernetes.io/ingress.class" in annotations:
            return
        if name := self._class(_INGRESSES, _DEFAULT_INGRESS):
            spec["ingressClassName"] = name

    def _class(self, bucket: str, marks: tuple[str, ...]) -> str | None:
        """The class marked as the default one; of several the newest."""
        found = [obj["metadata"] for obj in self._all(bucket)]
        marked = [m for m in found if any((m.get("annotations") or {}).get(mark) == "true" for mark in marks)]
        newest = sorted(marked, key=lambda m: (m.get("creationTimestamp", ""), m["name"]))
        return str(newest[-1]["name"]) if newest else None
