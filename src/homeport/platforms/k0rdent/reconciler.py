"""What the reconcilers of k0rdent's kinds have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic

from homeport.client.protocol import Key
from homeport.platforms.k0rdent.name import FIELD_MANAGER, MANAGEMENT
from homeport.runtime.applier import Applier
from homeport.runtime.manager import Manager
from homeport.runtime.reconciler import Scope
from homeport.runtime.skeleton import O, ObjectReconciler, S


class K0rdentReconciler(ObjectReconciler[O, S]):
    """Conditions report what is waited for, as in k0rdent: events are for warnings alone."""

    field_manager = FIELD_MANAGER
    waits_are_events = False

    def __init__(self, manager: Manager) -> None:
        super().__init__(manager)
        self.applier = Applier(self.client, self._write, self.clock)

    def forget(self, key: Key) -> None:
        super().forget(key)
        self.applier.forget(key)


class CheckReconciler(K0rdentReconciler[O, Scope[O]], Generic[O]):
    """For kinds that own nothing outside of the API: an object that is being deleted needs no work."""

    def load(self, obj: O) -> Scope[O] | None:
        return None if obj.metadata.deletion_timestamp else Scope(obj)


class KindReconciler(CheckReconciler[O], Generic[O]):
    """One for each of several kinds."""

    def __init__(self, manager: Manager, kind: type[O]) -> None:
        self.kind = kind
        self.controller_name = f"k0rdent-{kind.__resource__.kind.lower()}"
        super().__init__(manager)


def management_key(obj: object) -> Iterable[Key]:
    """For watches: every change concerns the one Management."""
    del obj
    return (Key("", MANAGEMENT),)
