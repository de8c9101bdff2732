"""MetalLB's own kinds, as far as they are read."""

from __future__ import annotations

from typing import Final

from homeport.api.meta import Resource

POOL: Final = Resource("metallb.io", "v1beta1", "IPAddressPool", "ipaddresspools")
L2: Final = Resource("metallb.io", "v1beta1", "L2Advertisement", "l2advertisements")
BGP: Final = Resource("metallb.io", "v1beta1", "BGPAdvertisement", "bgpadvertisements")

CONTROLLER: Final = ("metallb/controller", "metallb-controller")
SPEAKER: Final = ("metallb/speaker", "metallb-speaker")
