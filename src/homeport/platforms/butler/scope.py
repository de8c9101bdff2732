"""Objects in work that use a provider."""

from __future__ import annotations

from typing import Generic

from homeport.runtime.reconciler import O, Scope


class ProviderScope(Scope[O], Generic[O]):
    def __init__(self, obj: O) -> None:
        super().__init__(obj)
        self.config = ""  # namespace and name of the ProviderConfig, once it is known
