"""One spelling of the kinds: Steward's, Kamaji's. Everything else is the same engine."""

from __future__ import annotations

from dataclasses import dataclass

from homeport.api.kamaji import controlplane as kamaji_control_plane
from homeport.api.kamaji import v1alpha1 as kamaji
from homeport.api.steward import controlplane as steward_control_plane
from homeport.api.steward import v1alpha1 as steward


@dataclass(frozen=True, slots=True, kw_only=True)
class Flavour:
    name: str
    tenant: type[steward.AnyTenantControlPlane]
    datastore: type[steward.AnyDataStore]
    generator: type[steward.AnyKubeconfigGenerator]
    control_plane: type[steward_control_plane.HostedControlPlane]
    template: type[steward_control_plane.HostedControlPlaneTemplate]

    @property
    def group(self) -> str:
        return self.tenant.__resource__.group

    @property
    def finalizer(self) -> str:
        return f"finalizer.{self.group}"

    @property
    def project_label(self) -> str:
        """On everything that is made for a control plane: watches select by it."""
        return f"{self.group}/project"

    @property
    def adopt_annotation(self) -> str:
        """On a TenantControlPlane: data in the datastore that nobody claims is taken over."""
        return f"{self.group}/adopt-schema"


STEWARD = Flavour(
    name="steward",
    tenant=steward.TenantControlPlane,
    datastore=steward.DataStore,
    generator=steward.KubeconfigGenerator,
    control_plane=steward_control_plane.StewardControlPlane,
    template=steward_control_plane.StewardControlPlaneTemplate,
)
KAMAJI = Flavour(
    name="kamaji",
    tenant=kamaji.TenantControlPlane,
    datastore=kamaji.DataStore,
    generator=kamaji.KubeconfigGenerator,
    control_plane=kamaji_control_plane.KamajiControlPlane,
    template=kamaji_control_plane.KamajiControlPlaneTemplate,
)
FLAVOURS = (STEWARD, KAMAJI)
