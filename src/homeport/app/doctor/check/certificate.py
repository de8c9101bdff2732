"""Checks of certificates of clusters that end soon, or have ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from homeport.app.doctor.diagnosis import Diagnosis
from homeport.app.doctor.fact import Facts
from homeport.runtime.clock import parse_time

_SOON_SECONDS = 21 * 86400.0


def machine_certificate(facts: Facts) -> Iterator[Diagnosis]:
    """Of control plane machines, as they report them."""
    for machine in facts.of_kind("Machine"):
        ends = (machine.get("status") or {}).get("certificatesExpiryDate")
        if not ends or (left := parse_time(ends) - facts.now) > _SOON_SECONDS:
            continue
        owners = machine.metadata.get("ownerReferences") or ()
        owner: dict[str, Any] = next((each for each in owners if each.get("controller")), {})
        name = f"{str(owner.get('kind', '')).lower()}/{owner.get('name', '')}"
        cure = facts.commands.run("rollout", "restart", name, "-n", machine.namespace)
        text = f"its certificates {'have expired' if left <= 0 else 'expire'} at {ends}: replace the machine"
        key = f"{machine.namespace}/{machine.name}"
        yield Diagnosis("CertificateExpires", "certificate", "Machine", key, text, cure, serious=left <= 0)


def kubeconfig(facts: Facts) -> Iterator[Diagnosis]:
    """Of the kubeconfig that the plane itself uses."""
    for cluster, workload in facts.workloads.items():
        left = workload.certificate_seconds
        if left is not None and left <= 0:
            text = f"Secret {cluster.namespace}/{cluster.name}-kubeconfig: its certificate has expired"
            cure = facts.commands.kubectl("delete", "secret", f"{cluster.name}-kubeconfig", "-n", cluster.namespace)
            yield Diagnosis("KubeconfigExpired", "certificate", "Cluster", str(cluster), text, cure)


CHECKS = (machine_certificate, kubeconfig)
