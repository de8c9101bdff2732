"""What machines print on their consoles when they fail to start. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

# What a console says > the cause, and what to do. The first that matches counts.
_SIGNS = (
    (
        re.compile(r"could not resolve host|no such host|name resolution|server misbehaving", re.I),
        "GuestHasNoDNS",
        "the machine can't resolve names: check the DNS servers of its subnet",
    ),
    (
        re.compile(r"failed to pull image|pulling image.*(failed|error)|ErrImagePull|ImagePull", re.I),
        "GuestCannotPullImages",
        "the machine can't pull images: check its access to the registries, or use a mirror",
    ),
    (
        re.compile(r"this version of kubeadm only supports|kubernetes version.*(unsupported|not supported)", re.I),
        "ImageVersionMismatch",
        "the image contains another version of Kubernetes: use an image with the version of the Machine",
    ),
    (
        re.compile(r"(kubeadm|kubelet|containerd|k0s)[^\n]*(command not found|not found|no such file)", re.I),
        "ImageLacksPrograms",
        "the image lacks a program that the bootstrap data needs: use an image for this bootstrap provider",
    ),
    (
        re.compile(r"(curl|wget|download)[^\n]*(failed|timed out|error|unreachable)|network is unreachable", re.I),
        "GuestHasNoInternet",
        "the machine can't download: check its gateway and proxy, or use an image that contains everything",
    ),
    (
        re.compile(r"(token|bootstrap)[^\n]*(expired|invalid|not valid|unauthorized)|could not find a JWS", re.I),
        "JoinTokenInvalid",
        "the join token was not accepted: the controllers renew it; delete the Machine if this lasts",
    ),
    (
        re.compile(r":(6443|8132|9443)\b[^\n]*(timeout|timed out|refused|no route|unreachable)", re.I),
        "EndpointNotReachable",
        "the machine can't reach the control plane: check that its network has a route to the endpoint, and that no "
        "firewall blocks the port",
    ),
    (
        re.compile(r"error execution phase|\[ERROR [\w-]+\]|kubeadm (init|join)[^\n]*failed", re.I),
        "KubeadmFailed",
        "kubeadm failed on the machine",
    ),
    (
        re.compile(r"no bootable device|kernel panic|grub rescue|not a bootable disk", re.I),
        "ImageDoesNotBoot",
        "the image does not boot: check the image and the boot type (legacy, uefi)",
    ),
)
UNCERTAIN = "GuestFailed"  # a line that looks like an error
_ERROR = re.compile(r"\berror\b|\[ERROR|failed|fatal|panic", re.I)
_STAMP = re.compile(r"^\[ *\d+\.\d+\] *")
_LINES = 3  # of the console are quoted


@dataclass(frozen=True, slots=True)
class Sign:
    """`cause`: a word for scripts. `message`: what it means, what to do, and the lines that say so."""

    cause: str
    message: str


def read_sign(lines: Sequence[str]) -> Sign | None:
    """The first cause that is known; otherwise what looks like an error; None for a console without one."""
    plain = [_STAMP.sub("", line) for line in lines]
    for pattern, cause, advice in _SIGNS:
        said = [line for line in plain if pattern.search(line)]
        if said:
            return Sign(cause, f"{advice}. Its console says: {_quoted(said)}")
    said = [line for line in plain if _ERROR.search(line)]
    return Sign(UNCERTAIN, f"its console says: {_quoted(said)}") if said else None


def _quoted(lines: Sequence[str]) -> str:
    return " / ".join(dict.fromkeys(line.strip()[:300] for line in lines[-_LINES:]))
