"""The components of the plane. Adding one takes its folder and one line here."""

from __future__ import annotations

from homeport.bootstrap import COMPONENT as KUBEADM_BOOTSTRAP
from homeport.capi.component import Component
from homeport.ccm import COMPONENT as CCM
from homeport.controlplane import COMPONENT as KUBEADM_CONTROL_PLANE
from homeport.core import COMPONENT as CORE
from homeport.ipam import COMPONENT as IPAM
from homeport.providers.harvester.component import COMPONENT as HARVESTER
from homeport.providers.nutanix.component import COMPONENT as NUTANIX

# In the order in which they are installed.
COMPONENTS: tuple[Component, ...] = (
    CORE,
    KUBEADM_BOOTSTRAP,
    KUBEADM_CONTROL_PLANE,
    IPAM,
    NUTANIX,
    HARVESTER,
    CCM,
)
