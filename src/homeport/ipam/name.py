"""Finalizers, annotations and reasons, spelled as the provider does that others use: objects may change hands."""

from __future__ import annotations

PROTECT_POOL = "ipam.cluster.x-k8s.io/ProtectPool"
PROTECT_ADDRESS = "ipam.cluster.x-k8s.io/ProtectAddress"
RELEASE_ADDRESS = "ipam.cluster.x-k8s.io/ReleaseAddress"
# On a pool: it may be deleted though addresses of it are in use; for tools that move clusters.
SKIP_VALIDATE_DELETE = "ipam.cluster.x-k8s.io/skip-validate-delete-webhook"

POOL_NOT_READY = "PoolNotReady"
POOL_EXHAUSTED = "PoolExhausted"
ALLOCATION_FAILED = "AllocationFailed"

FIELD_MANAGER = "homeport-ipam"
