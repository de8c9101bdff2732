"""Certificates of an installation's webhooks that expired, were lost or were damaged, on a real kube-apiserver: what a
user reads meanwhile, and that it heals by itself."""

from __future__ import annotations

import base64
import contextlib
import datetime
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from capikit.installed import refusals, running
from capikit.podnetwork import NetworkedKube
from e2e.test_install_on_kubernetes import homeport, ok
from e2e.test_installed_webhook import CLUSTER, CLUSTERS, SECRET, held, known, until, write
from homeport.apiserver.auth import certificate as certs
from homeport.runtime.webhook.authority import Authority, AuthorityError, parse_authority

pytestmark = [pytest.mark.timeout(900)]

HEALED_SECONDS = 60.0  # a few on two cores with nothing else to do
EMPTY = base64.b64encode(b"").decode()


@pytest.fixture
def kube(binaries: dict[str, Path] | str) -> Iterator[NetworkedKube]:
    if isinstance(binaries, str):
        pytest.skip(binaries)
    with NetworkedKube(binaries) as made:
        yield made


def encoded(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def aged(days: float) -> Authority:
    """A CA that was made so many days ago."""
    key = certs.make_key()
    made = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=days)
    return Authority(certs.Issuer(certs.sign_ca(key, made), key))


def inject(kube: NetworkedKube, bundle: str) -> None:
    """Into everything that names a CA, as if somebody had put it there."""
    for kind in ("validatingwebhookconfigurations", "mutatingwebhookconfigurations"):
        for each in json.loads(ok(kube, "get", kind, "-o", "json"))["items"]:
            patch = [
                {"op": "add", "path": f"/webhooks/{number}/clientConfig/caBundle", "value": bundle}
                for number in range(len(each["webhooks"]))
            ]
            ok(kube, "patch", kind, each["metadata"]["name"], "--type=json", "-p", json.dumps(patch))
    patch = [{"op": "add", "path": "/spec/conversion/webhook/clientConfig/caBundle", "value": bundle}]
    ok(kube, "patch", "crd", "clusters.cluster.x-k8s.io", "--type=json", "-p", json.dumps(patch))


def expire(kube: NetworkedKube) -> None:
    """As after years without any replica."""
    old = aged(certs.CA_DAYS + 30)
    write(kube, data=old.as_data())
    inject(kube, encoded(old.bundle))


def come_from_the_future(kube: NetworkedKube) -> None:
    """As if it had been made by a replica whose clock was wrong."""
    early = aged(-30)
    write(kube, data=early.as_data())
    inject(kube, encoded(early.bundle))


def lose(kube: NetworkedKube) -> None:
    code, body = kube.request(SECRET, "DELETE")
    assert code in (200, 404), body
    inject(kube, EMPTY)


def damage(kube: NetworkedKube) -> None:
    write(kube, data={"ca.crt": encoded(b"not PEM"), "ca.key": encoded(b"\x00\xff")})


def mix_up(kube: NetworkedKube) -> None:
    """A key that belongs to another certificate."""
    write(kube, data={"ca.key": encoded(certs.key_pem(certs.make_key()))})


def empty(kube: NetworkedKube) -> None:
    inject(kube, EMPTY)


def leave(kube: NetworkedKube) -> None:
    """As it is."""


def refused(kube: NetworkedKube) -> str:
    """'' if an object of an older version is converted, defaulted and accepted."""
    code, body = kube.request(CLUSTERS, "POST", CLUSTER)
    return "" if code == 201 else body.decode()


def agreed(kube: NetworkedKube) -> bool:
    """Whether the Secret has a CA again, and everything trusts it."""
    code, body = kube.request(SECRET)
    try:
        return code == 200 and known(kube) == {parse_authority(json.loads(body)["data"]).bundle.decode()}
    except AuthorityError:
        return False


def await_healed(kube: NetworkedKube, what: str, seconds: float = HEALED_SECONDS) -> float:
    began = time.monotonic()
    until(lambda: not refused(kube), f"writes succeed after {what}", seconds)
    until(lambda: agreed(kube), f"one CA everywhere after {what}", seconds)
    return time.monotonic() - began


def told(kube: NetworkedKube, verb: str) -> str:
    command = [sys.executable, "-m", "homeport", verb, "--kubeconfig", str(kube.kubeconfig)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env={**os.environ})
    return " ".join((done.stdout + done.stderr).split())


@contextlib.contextmanager
def two_at_once(kube: NetworkedKube) -> Iterator[list[Path]]:
    with ThreadPoolExecutor(2) as pool, contextlib.ExitStack() as stack:
        replicas = [running(kube), running(kube)]
        logs = list(pool.map(lambda replica: replica.__enter__(), replicas))
        for replica in replicas:
            stack.push(replica.__exit__)
        yield logs


BREAK: dict[str, tuple[Callable[[NetworkedKube], None], str]] = {
    "expired": (expire, "the CA expired on"),
    "future": (come_from_the_future, "the CA is valid from"),
    "lost": (lose, "the CA is missing"),
    "damaged": (damage, ""),
    "mixed up": (mix_up, ""),
}


def test_replicas_that_start_with_broken_certificates_heal_them_and_meanwhile_the_cause_is_named(
    kube: NetworkedKube,
) -> None:
    """Two start at the same moment each time, the first time without any certificate."""
    homeport("install", "--kubeconfig", str(kube.kubeconfig))
    seen: set[int] = set()
    for name, (break_it, words) in {"new": (leave, ""), **BREAK}.items():
        break_it(kube)
        if words:
            assert words in told(kube, "status"), name
            assert words in told(kube, "doctor"), name
        with two_at_once(kube) as logs:
            await_healed(kube, name)
            assert not [line for log in logs for line in refusals(log)]
        seen.add(held(kube).issuer.certificate.serial_number)
    assert len(seen) == 1 + len(BREAK), "each time a new CA"


def test_what_is_broken_while_replicas_run_heals_within_seconds(kube: NetworkedKube) -> None:
    homeport("install", "--kubeconfig", str(kube.kubeconfig))
    with running(kube), running(kube) as log:
        await_healed(kube, "the start")
        for name, break_it in {**{name: each[0] for name, each in BREAK.items()}, "emptied": empty}.items():
            break_it(kube)
            seconds = await_healed(kube, name)
            print(f"{name}: {seconds:.1f} s")
        assert not refusals(log)


def test_a_ca_of_others_that_can_not_be_used_is_named_until_it_is_repaired(kube: NetworkedKube) -> None:
    """It is not ours to replace."""
    homeport("install", "--kubeconfig", str(kube.kubeconfig))
    with running(kube) as log:
        await_healed(kube, "the start")
        given: dict[str, Any] = {"tls.crt": encoded(b"garbage"), "tls.key": encoded(b"garbage")}
        write(kube, data=given)
        until(lambda: "data[tls.crt] is damaged" in log.read_text(), "the cause is in the log")
        assert not refused(kube), "the certificate that it has is still good"
        assert json.loads(kube.request(SECRET)[1])["data"]["tls.crt"] == given["tls.crt"]
        assert kube.request(SECRET, "DELETE")[0] == 200
        await_healed(kube, "the Secret was deleted, as the message advises")
    assert "delete the Secret, and the replicas create a CA of their own" in log.read_text()
