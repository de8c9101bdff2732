"""Finalizers, annotations and reasons, spelled as the provider does that others use: objects may change hands."""

from __future__ import annotations

from homeport.api.ipam.v1alpha2 import GROUP

PROTECT_POOL = f"{GROUP}/ProtectPool"
PROTECT_ADDRESS = f"{GROUP}/ProtectAddress"
RELEASE_ADDRESS = f"{GROUP}/ReleaseAddress"
# On a pool: it may be deleted though addresses of it are in use; for tools that move clusters.
SKIP_VALIDATE_DELETE = f"{GROUP}/skip-validate-delete-webhook"

POOL_NOT_READY = "PoolNotReady"
POOL_EXHAUSTED = "PoolExhausted"
ALLOCATION_FAILED = "AllocationFailed"

FIELD_MANAGER = "homeport-ipam"
