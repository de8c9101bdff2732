"""The reconcile skeleton for objects that belong to a Cluster: paused with it, or by an annotation of their own."""

from __future__ import annotations

from typing import Any, TypeVar

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import Object
from homeport.capi.object.paused import has_annotation, is_paused, paused_condition
from homeport.runtime.clock import rfc3339
from homeport.runtime.reconciler import Scope
from homeport.runtime.skeleton import ObjectReconciler

O = TypeVar("O", bound=Object)
S = TypeVar("S", bound=Scope[Any])


class CapiReconciler(ObjectReconciler[O, S]):
    waits_are_events = False  # waiting is what these objects do most

    def cluster_of(self, scope: S) -> Cluster | None:
        """The Cluster with which the object is paused. None: the annotation alone pauses it."""
        del scope
        return None

    def pause(self, scope: S) -> bool:
        obj, cluster = scope.object, self.cluster_of(scope)
        obj.status.conditions = paused_condition(
            obj.status.conditions, cluster, obj, now=rfc3339(self.clock.now()), generation=obj.metadata.generation
        )
        return is_paused(cluster, obj)


class PausableReconciler(ObjectReconciler[O, S]):
    """The annotation alone pauses the object, for example while `homeport move` carries it to another plane."""

    def pause(self, scope: S) -> bool:
        return has_annotation(scope.object)
