"""What the reconcilers of Butler's kinds have in common."""

from __future__ import annotations

from homeport.capi.reconciler import PausableReconciler
from homeport.platforms.butler.name import FIELD_MANAGER
from homeport.runtime.skeleton import O, S


class ButlerReconciler(PausableReconciler[O, S]):
    """The annotation of Cluster API pauses each object, as it does everywhere else."""

    field_manager = FIELD_MANAGER
