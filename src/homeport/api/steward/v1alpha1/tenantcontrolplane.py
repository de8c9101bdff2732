"""TenantControlPlane."""

from __future__ import annotations

import msgspec

from homeport.api.meta import Object, resource
from homeport.api.steward.v1alpha1.group import GROUP
from homeport.api.steward.v1alpha1.spec import TenantControlPlaneSpec
from homeport.api.steward.v1alpha1.status import TenantControlPlaneStatus


class AnyTenantControlPlane(Object):
    """What a TenantControlPlane is in every group that serves it."""

    spec: TenantControlPlaneSpec = msgspec.field(default_factory=TenantControlPlaneSpec)
    status: TenantControlPlaneStatus = msgspec.field(default_factory=TenantControlPlaneStatus)


@resource(GROUP, "v1alpha1", "TenantControlPlane", "tenantcontrolplanes")
class TenantControlPlane(AnyTenantControlPlane):
    """A TenantControlPlane is the control plane of a Kubernetes cluster that runs as Pods of this cluster."""
