"""Names of ServiceSets, and what stands on them. Pure."""

from __future__ import annotations

import hashlib

from homeport.api.k0rdent.v1beta1 import GROUP
from homeport.client.protocol import Key

SET_FINALIZER = f"{GROUP}/service-set"
MULTI_FINALIZER = f"{GROUP}/multicluster-service"
PAUSED_ANNOTATION = f"{GROUP}/service-set-paused"


def set_key(namespace: str, cluster: str, multi: str = "") -> Key:
    """`multi`: name of the MultiClusterService; '' for the services of the ClusterDeployment itself."""
    if not multi:
        return Key(namespace, cluster)
    return Key(namespace, f"{cluster}-{hashlib.sha256(multi.encode()).hexdigest()[:8]}")
