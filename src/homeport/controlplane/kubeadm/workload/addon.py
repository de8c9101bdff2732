"""kube-proxy and CoreDNS of a running cluster: which image they should have, and a Corefile that it can read. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

COREDNS = "coredns"
KUBE_PROXY = "kube-proxy"
_TAG = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")
_UPSTREAM_REGISTRIES = ("registry.k8s.io", "k8s.gcr.io")
# Plugins and options that a version of CoreDNS no longer reads: (since, plugin it stands in, name of the line).
_REMOVED = (
    ((1, 5, 0), "kubernetes", "resyncperiod"),
    ((1, 7, 0), "kubernetes", "upstream"),
    ((1, 7, 0), "federation", ""),
)
_FORWARD = (1, 5, 0)  # from here on `proxy` is called `forward`


class AddonError(Exception):
    """An add-on can't be changed as asked; says why and what to do."""


class Image(NamedTuple):
    repository: str
    name: str
    tag: str

    def __str__(self) -> str:
        head = f"{self.repository}/{self.name}" if self.repository else self.name
        return f"{head}:{self.tag}" if self.tag else head


def parse_image(text: str) -> Image:
    """`registry:5000/path/name:tag@digest`; the digest is dropped, as a change of the tag makes it wrong."""
    text = text.partition("@")[0]
    repository, _, last = text.rpartition("/")
    name, _, tag = last.partition(":")
    return Image(repository, name, tag)


def container_image(workload: Mapping[str, Any], container: str) -> str:
    """The image of a container in a Deployment or DaemonSet; '' if there is none."""
    pod = (((workload.get("spec") or {}).get("template") or {}).get("spec")) or {}
    return next((str(each.get("image") or "") for each in pod.get("containers") or () if each["name"] == container), "")


def kube_proxy_image(current: str, version: str, repository: str) -> str:
    found = parse_image(current)
    # A build tag can't stand in an image's tag.
    wanted = found._replace(tag=version.replace("+", "_"))
    return str(wanted._replace(repository=repository.rstrip("/")) if repository else wanted)


def coredns_image(current: str, configuration: Mapping[str, Any]) -> str:
    """Another one only if the user names one: there is no version of CoreDNS for a version of Kubernetes."""
    found = parse_image(current)
    dns = configuration.get("dns") or {}
    repository = str(dns.get("imageRepository") or configuration.get("imageRepository") or "").rstrip("/")
    wanted = found._replace(tag=str(dns.get("imageTag") or found.tag))
    if repository:
        wanted = wanted._replace(repository=repository)
    if wanted.repository in _UPSTREAM_REGISTRIES and numbers(wanted.tag) >= (1, 8, 0):
        wanted = wanted._replace(repository=f"{wanted.repository}/{COREDNS}")
    return str(wanted)


def numbers(tag: str) -> tuple[int, int, int]:
    """The version in an image's tag. Raises AddonError."""
    found = _TAG.match(tag)
    if found is None:
        raise AddonError(f"the image tag {tag!r} of CoreDNS contains no version: use for example v1.11.3")
    return int(found[1]), int(found[2]), int(found[3])


def check_coredns(current: str, wanted: str) -> None:
    """Raises AddonError for a version that goes back."""
    before, after = parse_image(current).tag, parse_image(wanted).tag
    if numbers(after) < numbers(before):
        raise AddonError(f"CoreDNS can't be downgraded from {before} to {after}: set dns.imageTag to {before} or newer")


def migrated_corefile(corefile: str, before: tuple[int, int, int], after: tuple[int, int, int]) -> str:
    """The Corefile without what the newer version refuses to read."""
    gone = [(plugin, line) for since, plugin, line in _REMOVED if before < since <= after]
    renamed = before < _FORWARD <= after
    kept: list[str] = []
    blocks: list[str] = []  # plugins whose blocks are open
    dropping = 0  # depth at which a plugin is being left out
    for line in corefile.splitlines():
        words = line.split()
        word = words[0] if words and not words[0].startswith("#") else ""
        opens, closes = line.rstrip().endswith("{") and bool(word), word == "}"
        inside = blocks[-1] if blocks else ""
        drop = bool(dropping) or (word, "") in gone or (inside, word) in gone
        if closes and blocks:
            if dropping == len(blocks):
                dropping = 0
            blocks.pop()
        elif opens:
            blocks.append(word)
            if drop and not dropping:
                dropping = len(blocks)
        if not drop:
            kept.append(re.sub(r"\bproxy\b", "forward", line, count=1) if renamed and word == "proxy" else line)
    return "\n".join(kept) + ("\n" if corefile.endswith("\n") else "")
