"""The kinds of Kamaji's Cluster API provider: the same as Steward's under another name."""

from __future__ import annotations

from homeport.api.meta import resource
from homeport.api.steward.controlplane import GROUP, HostedControlPlane, HostedControlPlaneTemplate


@resource(GROUP, "v1alpha1", "KamajiControlPlane", "kamajicontrolplanes")
class KamajiControlPlane(HostedControlPlane):
    """A KamajiControlPlane is the control plane of a Cluster that runs as Pods: it makes a TenantControlPlane."""


@resource(GROUP, "v1alpha1", "KamajiControlPlaneTemplate", "kamajicontrolplanetemplates")
class KamajiControlPlaneTemplate(HostedControlPlaneTemplate):
    """A KamajiControlPlaneTemplate is the template of the KamajiControlPlanes of a ClusterClass."""
