"""Git repositories that templates name: where they are, and their files while they are fresh."""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from homeport.addons.chart.credential import decoded
from homeport.api.flux.v1 import GitRepository
from homeport.api.k0rdent.v1beta1.template import GitRef, GitSource
from homeport.api.meta import Resource
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key
from homeport.helm.errors import SourceError
from homeport.helm.source.git import GitAccount, GitAddress, GitTree, fetch_tree

GIT = "GitRepository"
_SECRET = Resource("", "v1", "Secret", "secrets")
_KEPT = 16  # trees in memory
_LEAST_SECONDS = 60.0  # between two looks at one repository
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
# Fields of a GitRepository that would change what is fetched.
_REFUSED = ("verify", "include", "ignore", "recurseSubmodules", "sparseCheckout", "proxySecretRef")


@dataclass(frozen=True, slots=True)
class Checkout:
    """One commit of a repository, with a Secret and with how long it counts as new."""

    address: GitAddress
    secret: Key | None = None
    seconds: float = _LEAST_SECONDS


async def find_checkout(client: Client, key: Key, field_name: str) -> Checkout:
    """Of a GitRepository. Raises SourceError."""
    try:
        found = await client.get(GitRepository, key)
    except NotFound:
        raise SourceError(f"{field_name}: GitRepository {key} does not exist: create it") from None
    spec = found.spec
    for name in _REFUSED:
        if getattr(spec, _SNAKE.get(name, name)):
            raise SourceError(f"GitRepository {key}: spec.{name} is not supported: leave it out")
    if spec.provider not in ("", "generic"):
        raise SourceError(f"GitRepository {key}: spec.provider {spec.provider} is not supported: use a secretRef")
    secret = Key(key.namespace, spec.secret_ref.name) if spec.secret_ref is not None else None
    return Checkout(_address(spec.url, spec.ref), secret, _seconds(spec.interval))


_SNAKE = {
    "recurseSubmodules": "recurse_submodules",
    "sparseCheckout": "sparse_checkout",
    "proxySecretRef": "proxy_secret_ref",
}


def written_checkout(source: GitSource, namespace: str) -> Checkout:
    """Of a repository that the template itself describes."""
    secret = Key(namespace, source.secret_ref.name) if source.secret_ref is not None else None
    return Checkout(_address(source.url, source.ref), secret, _seconds(source.interval))


def _address(url: str, ref: Any) -> GitAddress:
    given = ref if ref is not None else GitRef()
    return GitAddress(url, given.branch, given.tag, given.semver, given.name, given.commit)


def _seconds(interval: str) -> float:
    found = _DURATION.fullmatch(interval or "")
    hours, minutes, seconds = (int(each or 0) for each in found.groups()) if found else (0, 0, 0)
    return max(_LEAST_SECONDS, hours * 3600.0 + minutes * 60 + seconds)


@dataclass(slots=True)
class Trees:
    """Files of repositories. One that can't be reached keeps the files that it had."""

    client: Client
    _kept: OrderedDict[tuple[GitAddress, str], tuple[GitTree, float]] = field(default_factory=OrderedDict)

    async def read(self, checkout: Checkout) -> GitTree:
        """Raises SourceError."""
        account, identity = await self._account(checkout.secret)
        key, now = (checkout.address, identity), asyncio.get_running_loop().time()
        known = self._kept.get(key)
        if known is not None and (checkout.address.commit or now - known[1] < checkout.seconds):
            return known[0]
        try:
            tree = await fetch_tree(checkout.address, account)
        except SourceError:
            if known is None:
                raise
            tree = known[0]
        self._kept[key] = tree, now
        self._kept.move_to_end(key)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return tree

    async def _account(self, key: Key | None) -> tuple[GitAccount, str]:
        if key is None:
            return GitAccount(), ""
        try:
            secret = await self.client.get(_SECRET, key)
        except NotFound:
            raise SourceError(f"Secret {key} of the repository does not exist: create it") from None
        meta = secret["metadata"]
        return GitAccount.parse(decoded(secret)), f"{meta['uid']}/{meta['resourceVersion']}"
