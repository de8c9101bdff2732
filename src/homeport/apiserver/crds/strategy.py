"""What is special about definitions, and about the objects that they define."""

from __future__ import annotations

from homeport.apiserver.auth.decision import refusal
from homeport.apiserver.crds.condition import set_condition
from homeport.apiserver.kinds.strategy import NoRules
from homeport.apiserver.resource import Json
from homeport.client.errors import Cause
from homeport.machinery import crd

FINALIZER = "customresourcecleanup.apiextensions.k8s.io"


class DefinitionStrategy(NoRules):
    """The kind CustomResourceDefinition."""

    def default(self, obj: Json) -> None:
        crd.default(obj)

    def prepare_create(self, obj: Json) -> None:
        obj["status"] = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": []}
        if isinstance(obj.get("spec"), dict):
            crd.remember_storage_version(obj)

    def prepare_update(self, obj: Json, old: Json) -> None:
        """The registry keeps the old status; a new storage version is noted there."""
        if not isinstance(obj.get("spec"), dict):
            return
        status = dict(old.get("status") or {})
        status["storedVersions"] = list(status.get("storedVersions") or ())
        obj["status"] = status
        crd.remember_storage_version(obj)

    def prepare_delete(self, obj: Json, now: str) -> None:
        """It stays until its objects are gone."""
        finalizers = obj["metadata"].setdefault("finalizers", [])
        if not obj["metadata"].get("deletionTimestamp") and FINALIZER not in finalizers:
            finalizers.append(FINALIZER)
            text = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
            set_condition(obj, "Terminating", "True", "InstanceDeletionPending", text, now)

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        return [Cause(*violation) for violation in crd.check(obj, old)]


class CustomStrategy(NoRules):
    """A kind that a definition defines. `status_versions`: where the status is a subresource. `ending` is the resource,
    as group and plural, if its definition is being deleted.
    """

    def __init__(self, status_versions: frozenset[str], ending: tuple[str, str] | None = None) -> None:
        self._status_versions = status_versions
        self._ending = ending

    def prepare_create(self, obj: Json) -> None:
        if self._ending is not None:
            why = "create not allowed while custom resource definition is terminating"
            raise refusal(*self._ending, obj["metadata"].get("name", ""), why)
        if obj.get("apiVersion") in self._status_versions:
            obj.pop("status", None)
