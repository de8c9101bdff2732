"""Whether machines come up with an image, as far as its name tells."""

from __future__ import annotations

import re

from homeport.infra.preflight.check import REFERENCES
from homeport.infra.preflight.plan import MachinePlan
from homeport.infra.protocol import Check

# Systems that don't read what others read: by what their images are called.
_IMMUTABLE = re.compile(r"flatcar|coreos", re.IGNORECASE)
_TALOS = re.compile(r"talos", re.IGNORECASE)
# Systems by what their images are called; the first that matches counts.
_SYSTEMS = {
    "talos": _TALOS,
    "flatcar": re.compile(r"flatcar", re.IGNORECASE),
    "rocky": re.compile(r"rocky", re.IGNORECASE),
    "ubuntu": re.compile(r"ubuntu|jammy|noble|focal", re.IGNORECASE),
    "debian": re.compile(r"debian|bookworm|bullseye", re.IGNORECASE),
    "kairos": re.compile(r"kairos", re.IGNORECASE),
    "bottlerocket": re.compile(r"bottlerocket", re.IGNORECASE),
    "coreos": re.compile(r"coreos", re.IGNORECASE),
}
# A version of Kubernetes in the name of an image; systems and container runtimes have other numbers.
_KUBERNETES = re.compile(r"(?<![\d.])v?(1\.[2-9]\d\.\d+)(?![\d.]*\d)")


def system_of(name: str) -> str:
    """The operating system of an image as its name tells it; '' if it does not."""
    return next((system for system, pattern in _SYSTEMS.items() if pattern.search(name)), "")


def kubernetes_of(name: str) -> str:
    """The version of Kubernetes of an image as its name tells it, for example v1.30.0; '' if it does not."""
    found = _KUBERNETES.search(name)
    return f"v{found[1]}" if found else ""


def misfit(name: str, plan: MachinePlan) -> tuple[str, str] | None:
    """Why machines with this image would never come up: (reason, sentence).

    Only kubeadm's needs are known; other bootstrap providers know best which image they want.
    """
    if not plan.kubeadm:
        return None
    if _TALOS.search(name):
        text = f"{name!r} is a Talos image, which can't use the kubeadm configuration of {plan.owner}"
        return "ImageDoesNotFit", f"{text}: use an image with cloud-init and kubeadm"
    if _IMMUTABLE.search(name) and plan.format and plan.format != "ignition":
        text = f"{name!r} requires Ignition, but {plan.owner} has the format {plan.format}"
        return "ImageDoesNotFit", f"{text}: set format: ignition, or use another image"
    return None


def check_version(name: str, plan: MachinePlan, path: str) -> Check:
    """`path`: the field that names the image."""
    other = _other_version(name, plan)
    if not other:
        return Check(REFERENCES, True)
    text = f"{path}: {name!r} contains Kubernetes {other} (from its name), but {plan.owner} has version {plan.version}"
    return Check(REFERENCES, False, "ImageVersionMismatch", text, advisory=True)


def _other_version(name: str, plan: MachinePlan) -> str:
    """The version of Kubernetes that the name of an image tells, if that is another than the one wanted."""
    found = _KUBERNETES.findall(name)
    asked = plan.version.removeprefix("v").partition("+")[0].partition("-")[0]
    return f"v{found[0]}" if found and asked and asked not in found else ""
