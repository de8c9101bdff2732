"""What the reconcilers of Butler's kinds have in common."""

from __future__ import annotations

from homeport.capi.object.paused import has_annotation
from homeport.platforms.butler.name import FIELD_MANAGER
from homeport.runtime.skeleton import O, ObjectReconciler, S


class ButlerReconciler(ObjectReconciler[O, S]):
    """The annotation of Cluster API pauses each object, as it does everywhere else."""

    field_manager = FIELD_MANAGER

    def pause(self, scope: S) -> bool:
        return has_annotation(scope.object)
