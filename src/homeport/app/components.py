"""The components of the plane. Adding one takes its folder and one line here."""

from __future__ import annotations

from homeport.addons import COMPONENT as ADDONS
from homeport.bootstrap import COMPONENT as KUBEADM_BOOTSTRAP
from homeport.bootstrap.k0s.install import COMPONENT as K0S_BOOTSTRAP
from homeport.capi.component import Component
from homeport.ccm import COMPONENT as CCM
from homeport.controlplane import COMPONENT as KUBEADM_CONTROL_PLANE
from homeport.controlplane.k0s.install import COMPONENT as K0S_CONTROL_PLANE
from homeport.core import COMPONENT as CORE
from homeport.hosted.component import KAMAJI, STEWARD
from homeport.hosted.k0smotron.install import COMPONENT as K0SMOTRON
from homeport.ipam import COMPONENT as IPAM
from homeport.platforms.butler.component import COMPONENT as BUTLER
from homeport.platforms.k0rdent.component import COMPONENT as K0RDENT
from homeport.providers.harvester.component import COMPONENT as HARVESTER
from homeport.providers.nutanix.component import COMPONENT as NUTANIX
from homeport.providers.remote.component import COMPONENT as REMOTE

# In the order in which they are installed.
COMPONENTS: tuple[Component, ...] = (
    CORE,
    KUBEADM_BOOTSTRAP,
    KUBEADM_CONTROL_PLANE,
    IPAM,
    K0SMOTRON,
    K0S_BOOTSTRAP,
    K0S_CONTROL_PLANE,
    NUTANIX,
    HARVESTER,
    REMOTE,
    CCM,
    ADDONS,
    STEWARD,
    KAMAJI,
    BUTLER,
    K0RDENT,
)
