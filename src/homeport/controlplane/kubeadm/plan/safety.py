"""Changes of a KubeadmControlPlane that admission refuses, for servers that do not call this admission: nothing is done
about them, and the object says why. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.capi import version


def unsafe_change(kcp: KubeadmControlPlane, machine_versions: Iterable[str], *, etcd_managed: bool) -> str:
    """What is wrong with the spec, given the Machines that exist; '' if it can be acted on."""
    return _replicas(kcp, etcd_managed) or _version(kcp.spec.version, machine_versions)


def _replicas(kcp: KubeadmControlPlane, etcd_managed: bool) -> str:
    replicas = 1 if kcp.spec.replicas is None else kcp.spec.replicas
    if etcd_managed and replicas > 0 and replicas % 2 == 0:
        return f"spec.replicas is {replicas}: an even number of etcd members is not safe; set an odd number"
    return ""


def _version(wanted: str, machine_versions: Iterable[str]) -> str:
    if not version.is_valid(wanted):
        return f'spec.version is "{wanted}": not a valid version; set for example v1.32.4'
    known = [version.parse(text) for text in machine_versions if text and version.is_valid(text)]
    if not known:
        return ""
    new, newest = version.parse(wanted), max(known, key=lambda each: (each.major, each.minor))
    oldest = min(each.minor for each in known)
    runs = f"Machines run v{newest.major}.{newest.minor}"
    if new.major != newest.major or new.minor > newest.minor + 1:
        return f"spec.version is {wanted}, but {runs}: upgrade one minor version at a time"
    if new.minor < newest.minor - 1:
        return f"spec.version is {wanted}, but {runs}: a downgrade of more than one minor version is not possible"
    if new.minor < oldest:
        # While an upgrade is under way, it can be taken back: etcd and its objects are still those of the old version.
        return f"spec.version is {wanted}, but all {runs}: a finished upgrade can't be taken back"
    return ""
