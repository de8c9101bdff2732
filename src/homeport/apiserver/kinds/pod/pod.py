"""Pod: its life cycle fields, and the little of a spec that may change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from homeport.apiserver.kinds.check import MAX_INT32, forbidden, invalid, required, within
from homeport.apiserver.kinds.pod.rule import ephemeral_containers, padded_image, pod_spec
from homeport.apiserver.kinds.pod.security import annotated_seccomp
from homeport.apiserver.kinds.pod.spec import default_pod_spec, default_requests
from homeport.apiserver.kinds.strategy import Plain
from homeport.apiserver.resource import Json
from homeport.client.errors import Cause
from homeport.machinery.quantity import parse_quantity

_CHANGEABLE = (
    "`spec.containers[*].image`", "`spec.initContainers[*].image`", "`spec.activeDeadlineSeconds`",
    "`spec.tolerations` (only additions to existing tolerations)",
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
)  # fmt: skip


class Pod(Plain):
    def begin(self, obj: Json) -> None:
        obj["status"] = {"phase": "Pending"}

    def prepare_update(self, obj: Json, old: Json) -> None:
        """What admission set when the Pod was made is kept when a client leaves it out."""
        spec = obj["spec"] = obj.get("spec") or {}
        before = old.get("spec") or {}
        for field in ("priority", "preemptionPolicy"):
            if field not in spec and field in before:
                spec[field] = before[field]

    def default(self, obj: Json) -> None:
        spec = obj["spec"] = obj.get("spec") or {}
        default_pod_spec(spec)
        default_requests(spec)
        spec.setdefault("enableServiceLinks", True)
        if spec["terminationGracePeriodSeconds"] < 0:
            spec["terminationGracePeriodSeconds"] = 1
        if spec.get("hostNetwork"):
            _host_ports(spec)
        status = obj["status"] = obj.get("status") or {}
        if not status.get("qosClass"):
            status["qosClass"] = qos_class(spec)
        _sync_addresses(status)

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        spec = obj["spec"]
        # What was stored under older rules can still be bound, run and removed.
        causes = [] if old is not None and old["spec"] == spec else [*pod_spec("spec", spec), *_images(spec)]
        if old is None:
            if spec.get("ephemeralContainers"):
                causes.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
            if spec.get("nodeName") and spec.get("schedulingGates"):
                detail = "cannot be set until all schedulingGates have been cleared"
                causes.append(forbidden("spec.nodeName", detail))
            causes += annotated_seccomp("spec", obj["metadata"].get("annotations") or {}, spec)
        else:
            causes += _changed(spec, old["spec"])
        return causes

    def fields(self, obj: Json) -> Mapping[str, str]:
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        return {
            "spec.nodeName": spec.get("nodeName", ""),
            "spec.restartPolicy": spec.get("restartPolicy", ""),
            "spec.schedulerName": spec.get("schedulerName", ""),
            "spec.serviceAccountName": spec.get("serviceAccountName", ""),
            "spec.hostNetwork": "true" if spec.get("hostNetwork") else "false",
            "status.phase": status.get("phase", ""),
            "status.podIP": status.get("podIP", ""),
            "status.podIPs": status.get("podIP", ""),
            "status.nominatedNodeName": status.get("nominatedNodeName", ""),
        }


class EphemeralContainers:
    """pods/ephemeralcontainers: containers for debugging can be added, and nothing else be changed."""

    def prepare(self, obj: Json, old: Json) -> None:
        added = (obj.get("spec") or {}).get("ephemeralContainers")
        _put_back(obj, old)
        spec = obj["spec"] = dict(old["spec"])
        if added:
            spec["ephemeralContainers"] = added
        else:
            spec.pop("ephemeralContainers", None)

    def validate(self, obj: Json, old: Json) -> list[Cause]:
        now, before = (found["spec"].get("ephemeralContainers") or [] for found in (obj, old))
        spec = obj["spec"]
        causes = list(ephemeral_containers("spec.ephemeralContainers", now, spec))
        if not causes and now[: len(before)] != before:
            detail = "existing ephemeral containers may not be changed or removed"
            causes.append(forbidden("spec.ephemeralContainers", detail))
        return causes


class Resize:
    """pods/resize: what containers request and are limited to."""

    def prepare(self, obj: Json, old: Json) -> None:
        wanted = {c.get("name"): c.get("resources") for c in (obj.get("spec") or {}).get("containers") or ()}
        _put_back(obj, old)
        spec = obj["spec"] = dict(old["spec"])
        spec["containers"] = [
            {**c, "resources": wanted[c["name"]] or {}} if c["name"] in wanted else c for c in spec["containers"]
        ]

    def validate(self, obj: Json, old: Json) -> list[Cause]:
        causes = list(pod_spec("spec", obj["spec"]))
        if qos_class(obj["spec"]) != (old.get("status") or {}).get("qosClass"):
            causes.append(invalid("spec", None, "Pod QOS Class may not change as a result of resizing"))
        return causes


def _put_back(obj: Json, old: Json) -> None:
    for field in obj.keys() - {"metadata", "spec"}:
        del obj[field]
    for field in old.keys() - {"metadata", "spec"}:
        obj[field] = old[field]


FIELDS = (
    "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
    "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName",
)  # fmt: skip


def _host_ports(spec: Json) -> None:
    for field in ("containers", "initContainers"):
        for container in spec.get(field) or ():
            for port in container.get("ports") or ():
                if not port.get("hostPort") and port.get("containerPort"):
                    port["hostPort"] = port["containerPort"]


def _sync_addresses(status: Json) -> None:
    """podIP is the first of podIPs."""
    one, many = status.get("podIP"), status.get("podIPs")
    if one and (not many or many[0].get("ip") != one):
        status["podIPs"] = [{"ip": one}]
    elif many and not one:
        status["podIP"] = many[0].get("ip", "")


def qos_class(spec: Json) -> str:
    """Guaranteed: every container limits CPU and memory and requests as much. BestEffort: nobody asks for anything."""
    requests: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    guaranteed = True
    for field in ("containers", "initContainers"):
        for container in spec.get(field) or ():
            resources = container.get("resources") or {}
            bounded = set()
            for into, part in ((requests, "requests"), (limits, "limits")):
                for key, amount in (resources.get(part) or {}).items():
                    value = parse_quantity(amount)
                    if key in ("cpu", "memory") and value.amount > 0:
                        into[key] = into[key] + value if key in into else value
                        if part == "limits":
                            bounded.add(key)
            guaranteed = guaranteed and bounded == {"cpu", "memory"}
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


def _images(spec: Json) -> Iterator[Cause]:
    for field in ("containers", "initContainers"):
        for i, container in enumerate(spec.get(field) or ()):
            yield from padded_image(f"spec.{field}[{i}]", container)


def _changed(spec: Json, old: Json) -> Iterator[Cause]:
    for field in ("containers", "initContainers"):
        now, before = spec.get(field) or [], old.get(field) or []
        if len(now) != len(before):
            yield forbidden(f"spec.{field}", "pod updates may not add or remove containers")
            return
        for i, container in enumerate(now):
            if not container.get("image"):
                yield required(f"spec.{field}[{i}].image")
    deadline = list(_deadline(spec.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds")))
    yield from deadline
    if deadline and spec.get("activeDeadlineSeconds") is not None:
        return
    yield from _tolerations(spec.get("tolerations") or [], old.get("tolerations") or [])
    yield from _new_gates(spec.get("schedulingGates") or [], old.get("schedulingGates") or [])
    different = _differences(spec, old)
    if different:
        listed = ",".join(_CHANGEABLE)
        yield forbidden("spec", f"pod updates may not change fields other than {listed}\n{different}")


def _deadline(now: int | None, before: int | None) -> Iterator[Cause]:
    field = "spec.activeDeadlineSeconds"
    if now is not None:
        yield from within(field, now, 0, MAX_INT32)
        if before is not None and before < now:
            yield invalid(field, now, "must be less than or equal to previous value")
    elif before is not None:
        yield invalid(field, now, "must not update from a positive integer to nil value")


def _tolerations(now: list[Json], before: list[Json]) -> Iterator[Cause]:
    """Those that are there stay, but for their seconds."""
    kept = [{**toleration, "tolerationSeconds": None} for toleration in now]
    if any({**toleration, "tolerationSeconds": None} not in kept for toleration in before):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        yield forbidden("spec.tolerations", detail)


def _new_gates(now: list[Json], before: list[Json]) -> Iterator[Cause]:
    known = {gate.get("name") for gate in before}
    for i, gate in enumerate(now):
        if gate.get("name") not in known:
            detail = f"only deletion is allowed, but found new scheduling gate '{gate.get('name', '')}'"
            yield forbidden(f"spec.schedulingGates[{i}].name", detail)


def _differences(spec: Json, old: Json) -> str:
    """The fields that differ and may not, one per line; '' if there are none."""
    free = {"activeDeadlineSeconds", "tolerations", "schedulingGates", "containers", "initContainers"}
    if old.get("schedulingGates"):
        free |= {"nodeSelector", "affinity"}  # a gated Pod may still be told where to go
    names = sorted(
        field for field in spec.keys() | old.keys() if field not in free and spec.get(field) != old.get(field)
    )
    for field in ("containers", "initContainers"):
        for i, (now, before) in enumerate(zip(spec.get(field) or [], old.get(field) or [], strict=False)):
            parts = sorted(p for p in now.keys() | before.keys() if p != "image" and now.get(p) != before.get(p))
            names += [f"{field}[{i}].{part}" for part in parts]
    return "\n".join(f"spec.{name}" for name in names)
