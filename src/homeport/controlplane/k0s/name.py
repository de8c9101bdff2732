"""Names that a K0sControlPlane gives, and that others find it by."""

from __future__ import annotations

from typing import Final

FINALIZER: Final = "k0s.controlplane.cluster.x-k8s.io"
MANAGER: Final = "homeport-k0s-control-plane"
