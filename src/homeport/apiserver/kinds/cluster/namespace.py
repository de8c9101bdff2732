"""Namespace: its own finalizers in the spec, a phase, and the label that carries its name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from homeport.apiserver.kinds.check import invalid, label_key, named
from homeport.apiserver.kinds.strategy import Plain
from homeport.apiserver.resource import Json
from homeport.client.errors import Cause

NAME_LABEL = "kubernetes.io/metadata.name"
FINALIZER = "kubernetes"


class Namespace(Plain):
    def default(self, obj: Json) -> None:
        meta = obj["metadata"]
        if meta.get("name"):
            # Labels may be shared with the object this one was made from.
            meta["labels"] = {**(meta.get("labels") or {}), NAME_LABEL: meta["name"]}
        status = obj["status"] = obj.get("status") or {}
        status.setdefault("phase", "Active")

    def begin(self, obj: Json) -> None:
        obj["status"] = {"phase": "Active"}
        spec = obj["spec"] = obj.get("spec") or {}
        finalizers = spec.get("finalizers") or []
        if FINALIZER not in finalizers:
            spec["finalizers"] = [*finalizers, FINALIZER]

    def prepare_update(self, obj: Json, old: Json) -> None:
        # Only the finalize subresource takes finalizers away.
        spec = obj["spec"] = obj.get("spec") or {}
        kept = (old.get("spec") or {}).get("finalizers")
        if kept:
            spec["finalizers"] = kept
        else:
            spec.pop("finalizers", None)

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        return list(_finalizers(obj))

    def fields(self, obj: Json) -> Mapping[str, str]:
        return {"status.phase": (obj.get("status") or {}).get("phase", "")}


class Status:
    """namespaces/status: the phase follows from the deletion, not the other way round."""

    def prepare(self, obj: Json, old: Json) -> None:
        """The registry holds everything but the status."""

    def validate(self, obj: Json, old: Json) -> list[Cause]:
        phase, going = obj["status"].get("phase", ""), bool(obj["metadata"].get("deletionTimestamp"))
        if going == (phase == "Terminating"):
            return []
        wanted, state = ("Terminating", "not empty") if going else ("Active", "empty")
        return [invalid("status.Phase", phase, f"may only be '{wanted}' if `deletionTimestamp` is {state}")]


class Finalize:
    """namespaces/finalize: the spec's finalizers are taken as given, which is how a namespace is let go."""

    def prepare(self, obj: Json, old: Json) -> None:
        finalizers = (obj.get("spec") or {}).get("finalizers")
        obj["spec"] = {"finalizers": finalizers} if finalizers else {}
        obj["status"] = old.get("status") or {}

    def validate(self, obj: Json, old: Json) -> list[Cause]:
        return list(_finalizers(obj))


def _finalizers(obj: Json) -> Iterator[Cause]:
    for i, name in enumerate((obj.get("spec") or {}).get("finalizers") or ()):
        if "/" not in name and name != FINALIZER:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid(f"spec.finalizers[{i}]", name, detail)
        else:
            yield from named("spec.finalizers", name, label_key)
