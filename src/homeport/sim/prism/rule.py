"""What Prism Central accepts, whichever version of its API is asked."""

from __future__ import annotations

from collections.abc import Iterable

from homeport.sim.prism.core import Core
from homeport.sim.prism.entity import Category, Disk, Image, Subnet
from homeport.sim.prism.error import conflict, rejected
from homeport.sim.prism.site import Site


def check_image(site: Site, image: Image) -> None:
    _check_clusters(site, image.clusters)
    for category in image.categories:
        if category not in site.world.categories:
            raise rejected("", f"The category {category} is unknown.", "CATEGORY_NOT_FOUND")


def check_subnet(site: Site, subnet: Subnet) -> None:
    _check_clusters(site, subnet.clusters)
    if subnet.type == "VLAN" and not subnet.clusters:
        raise rejected("", "A VLAN subnet must name its cluster.", "CLUSTER_NOT_FOUND")


def _check_clusters(site: Site, clusters: Iterable[str]) -> None:
    for cluster in clusters:
        if cluster not in site.world.clusters:
            raise rejected("", f"The cluster {cluster} is unknown.", "CLUSTER_NOT_FOUND")


def refuse_used(site: Site, category: Category) -> None:
    clusters = any(category.ext_id in cluster.categories for cluster in site.world.clusters)
    if site.core.usage.by_category[category.ext_id] or clusters:
        raise conflict(
            f"The category {category.key}:{category.value} is associated with entities.", group="CATEGORY_IN_USE"
        )


def guess_os(name: str) -> str:
    """The family of the system, as far as the name of an image tells it."""
    lowered = name.lower()
    families = ("talos", "ubuntu", "rocky", "flatcar", "rhel", "debian", "centos", "windows")
    return next((family for family in families if family in lowered), "")


def customization_disk(core: Core, others: list[Disk]) -> Disk:
    """The config drive: a CD-ROM that the cluster makes itself, at IDE 3 where that is free."""
    used = {disk.index for disk in others if disk.bus == "IDE"}
    return Disk(
        ext_id=core.new_id(),
        bus="IDE",
        index=3 if 3 not in used else -1,
        cdrom=True,
        iso="GUEST_CUSTOMIZATION",
        disk_ext_id=core.new_id(),
        size_bytes=374_784,
    )
