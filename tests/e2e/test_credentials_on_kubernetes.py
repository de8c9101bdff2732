"""A replica on a real kube-apiserver while its credentials are renewed, revoked and renewed again."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest

from e2e.test_homeport_on_cluster import CONFIG_MAP, LEASE, NAMESPACE, Replica, fetch, sample, signatures
from homeport.client import kubeconfig
from homeport.client.errors import Unauthorized
from homeport.client.http import HttpClient
from homeport.client.protocol import Key
from present import present
from realkube import Authority, Credential, RealKube

pytestmark = [pytest.mark.timeout(240)]

ADMINISTRATORS = ["system:masters"]
SECONDS = 150.0


class Identity(Protocol):
    """Of one user, in files that are written again. The server accepts what was written last, until it is revoked."""

    def user(self) -> dict[str, str]:
        """Of a kubeconfig."""

    def renew(self) -> None:
        """Writes a new credential; the one before is still accepted."""

    def revoke(self) -> None:
        """All but the one that was written last."""

    def revoke_all(self) -> None: ...


class CertificateIdentity:
    """Each certificate has a CA of its own, and the server reads the file of those that it trusts again."""

    def __init__(self, kube: RealKube, folder: Path) -> None:
        self._kube = kube
        self._folder = folder
        self._own = kube.ca.read_bytes()
        self._authorities: list[Authority] = []

    def user(self) -> dict[str, str]:
        return {"client-certificate": str(self._folder / "tls.crt"), "client-key": str(self._folder / "tls.key")}

    def renew(self) -> None:
        folder = self._folder / f"{len(self._authorities)}"
        folder.mkdir()
        made = Authority(folder)
        self._trust(*self._authorities[-1:], made)
        self._authorities.append(made)
        issued: Credential = made.issue("renewed", ADMINISTRATORS)
        issued.cert.replace(self._folder / "tls.crt")
        issued.key.replace(self._folder / "tls.key")

    def revoke(self) -> None:
        self._trust(self._authorities[-1])

    def revoke_all(self) -> None:
        self._trust()

    def _trust(self, *authorities: Authority) -> None:
        written = self._folder / "trusted"
        written.write_bytes(self._own + b"".join(each.ca.read_bytes() for each in authorities))
        written.replace(self._kube.ca)


class TokenIdentity:
    """Each token of a ServiceAccount is bound to a Secret, and not valid without it."""

    def __init__(self, kube: RealKube, folder: Path) -> None:
        self._kube = kube
        self._folder = folder
        self._secrets: list[str] = []
        self._kubectl("create", "serviceaccount", "renewed")
        binding = ("--clusterrole=cluster-admin", "--serviceaccount=default:renewed")
        self._kubectl("create", "clusterrolebinding", "renewed", *binding)

    def user(self) -> dict[str, str]:
        return {"tokenFile": str(self._folder / "token")}

    def renew(self) -> None:
        name = f"renewed-{len(self._secrets)}"
        self._kubectl("create", "secret", "generic", name)
        self._secrets.append(name)
        bound = ("--bound-object-kind=Secret", f"--bound-object-name={name}")
        written = self._folder / "written"
        written.write_text(self._kubectl("create", "token", "renewed", *bound))
        written.replace(self._folder / "token")

    def revoke(self) -> None:
        self._kubectl("delete", "secret", *self._secrets[:-1])
        self._secrets = self._secrets[-1:]

    def revoke_all(self) -> None:
        self._kubectl("delete", "secret", *self._secrets)

    def _kubectl(self, *arguments: str) -> str:
        done = self._kube.kubectl(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout


async def until_health(address: str, path: str, holds: Callable[[int, str], bool]) -> None:
    found = (0, "")
    try:
        async with asyncio.timeout(90):
            while not holds(*(found := await asyncio.to_thread(fetch, address + path))):  # noqa: ASYNC110
                await asyncio.sleep(0.2)
    except TimeoutError:
        pytest.fail(f"{path} still answers {found}")


async def until_rejected(config: Path) -> None:
    """A server remembers for some seconds that a token was valid."""
    async with asyncio.timeout(60):
        while True:
            async with HttpClient(kubeconfig.load(config)) as asking:
                try:
                    await asking.get(NAMESPACE, Key("", "default"))
                except Unauthorized:
                    return
            await asyncio.sleep(0.2)


def copy_of(kube: RealKube, user: dict[str, str], target: Path) -> Path:
    """A kubeconfig with the credential as it is now."""
    kept = {field: target.with_name(f"old-{field}") for field in user}
    for field, path in kept.items():
        path.write_bytes(Path(user[field]).read_bytes())
    return write_config(kube, {field: str(path) for field, path in kept.items()}, target)


def write_config(kube: RealKube, user: dict[str, str], target: Path) -> Path:
    loaded = json.loads(kube.kubeconfig.read_text())
    loaded["users"][0]["user"] = user
    target.touch(mode=0o600)
    target.write_text(json.dumps(loaded))
    return target


async def follow(
    kube: RealKube, client: HttpClient, ns: str, config: Path, identity: Identity, replica: Replica
) -> None:
    line = await asyncio.to_thread(replica.until, "health: ", seconds=120)
    address = present(re.search(r"(http://\S+)/readyz", line))[1]
    await asyncio.to_thread(replica.until, "controllers: running", seconds=120)

    # A new one takes the place of the old one: the replica goes on as the leader.
    old = copy_of(kube, identity.user(), config.with_name("old"))
    identity.renew()
    identity.revoke()
    await until_rejected(old)
    await client.create(sample(ns, "renewed"), kind=CONFIG_MAP)
    assert await signatures(client, ns, 1) == {str(replica.pid)}
    held = (await client.get(LEASE, Key(ns, "homeport")))["spec"]
    assert (held["leaseTransitions"], f"-{replica.pid}-" in held["holderIdentity"]) == (0, True)
    assert await asyncio.to_thread(fetch, f"{address}/healthz") == (200, "ok")

    # None is accepted: a kubelet gets to know, and the process needs no restart as soon as there is a new one.
    identity.revoke_all()
    await until_health(address, "/healthz", lambda code, text: code == 503 and "rejected the credentials for" in text)
    await until_health(address, "/readyz", lambda code, text: code == 503)
    await client.create(sample(ns, "late"), kind=CONFIG_MAP)
    identity.renew()
    assert await signatures(client, ns, 2) == {str(replica.pid)}
    await until_health(address, "/readyz", lambda code, text: (code, text) == (200, "ok"))
    assert await asyncio.to_thread(fetch, f"{address}/healthz") == (200, "ok")


async def test_renewed_credentials_are_used_and_dead_ones_are_reported_until_they_are_renewed(
    kube: RealKube, client: HttpClient, replicas: list[Replica], tmp_path: Path
) -> None:
    async with asyncio.TaskGroup() as group:
        for ns, kind in (("certificate", CertificateIdentity), ("token", TokenIdentity)):
            await client.create({"metadata": {"name": ns}}, kind=NAMESPACE)
            folder = tmp_path / ns
            folder.mkdir()
            identity = kind(kube, folder)
            identity.renew()
            config = write_config(kube, identity.user(), folder / "kubeconfig")
            plugins = ("--plugin", "sample_controller:install_beside_lease", "--plugin", "impatient:install")
            common = ("--kubeconfig", str(config), "--namespace", ns, "--health", "127.0.0.1:0")
            replicas.append(Replica(*common, *plugins))
            following = follow(kube, client, ns, config, identity, replicas[-1])
            group.create_task(asyncio.wait_for(following, SECONDS))
    assert [each.terminate() for each in replicas] == [0, 0]
