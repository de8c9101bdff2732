"""The private keys of the cluster, from a copy of its /etc/kubernetes/pki, and the proof that they belong to it."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from homeport.api.meta import Resource
from homeport.app.importer.source import Refused, Running
from homeport.capi.remote import pki
from homeport.capi.remote.pki import KeyPair, PkiError, Purpose
from homeport.capi.remote.workload import Forwarding
from homeport.client.errors import ApiError, BadRequest
from homeport.client.portforward import Stream
from homeport.client.protocol import Client, Key, Query
from homeport.controlplane.kubeadm.etcd.inspector import Inspector
from homeport.controlplane.kubeadm.observe.health import EtcdView
from homeport.runtime.clock import Clock

Keys = dict[Purpose, KeyPair]

_ACCOUNT = Resource("", "v1", "ServiceAccount", "serviceaccounts")
_TOKEN_SECONDS = 600


async def read_keys(directory: Path, now: float) -> Keys:
    """All pairs, each looked at. Raises Refused with every problem."""
    found: Keys = {}
    problems = []
    for purpose in pki.GENERATED:
        try:
            found[purpose] = await asyncio.to_thread(_read, directory, purpose, now)
        except PkiError as error:
            problems.append(str(error))
    if problems:
        raise Refused(*problems)
    return found


def _read(directory: Path, purpose: Purpose, now: float) -> KeyPair:
    certificate, key = (Path(each) for each in pki.files(purpose, str(directory)))
    for file in (certificate, key):
        if not file.is_file():
            raise PkiError(f"{file} does not exist: copy it from /etc/kubernetes/pki of a control plane")
    pair = KeyPair(certificate.read_bytes(), key.read_bytes())
    pki.check(pair, purpose, where=f"{certificate} and {key.name}", now=now)
    return pair


async def check_keys(client: Client, running: Running, keys: Keys, cluster: Key, clock: Clock) -> list[str]:
    """Every proof that fails, as a sentence."""
    problems = []
    if not any(_same_certificate(keys["ca"].certificate, each) for each in running.authorities):
        seen = "publishes another one" if running.authorities else "does not publish its CA"
        problems.append(f"ca.crt of --pki is not the CA of the cluster, which {seen}: the files are of another cluster")
    if running.front_proxies and not any(
        _same_certificate(keys["proxy"].certificate, each) for each in running.front_proxies
    ):
        problems.append("front-proxy-ca.crt of --pki is not the front proxy CA of the cluster")
    problems += await _check_account_key(client, keys["sa"])
    problems += await _check_etcd(client, running, keys["etcd"], cluster, clock)
    return problems


def _same_certificate(ours: bytes, published: bytes) -> bool:
    """A bundle may hold several, while one CA replaces another."""
    try:
        mine = x509.load_pem_x509_certificate(ours)
        return mine in x509.load_pem_x509_certificates(published)
    except ValueError:
        return False


# -- the key of ServiceAccounts --------------------------------------------------------------------------------------


async def _check_account_key(client: Client, pair: KeyPair) -> list[str]:
    """The API server signs a short-lived token: sa.pub must verify it. Nothing is stored."""
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": _TOKEN_SECONDS},
    }
    try:
        accounts = (await client.list(_ACCOUNT, Query(namespace="kube-system", limit=1))).items
        if not accounts:
            return [
                "sa.key of --pki can't be checked: kube-system has no ServiceAccount that a token can be issued for"
            ]
        made = await client.create(body, kind=_ACCOUNT, key=Key("kube-system", accounts[0].name), subresource="token")
    except ApiError as error:
        return [f"sa.key of --pki can't be checked: the cluster issues no token ({error.message})"]
    token = str((made.get("status") or {}).get("token") or "")
    if is_signed(token, pair.certificate):
        return []
    return ["sa.pub of --pki does not verify tokens of the cluster: sa.key is not the key of its ServiceAccounts"]


def is_signed(token: str, public_pem: bytes) -> bool:
    """Whether a JWT was signed with the key of `public_pem`."""
    head, _, rest = token.partition(".")
    payload, _, signature = rest.partition(".")
    try:
        algorithm = json.loads(_decoded(head)).get("alg")
        public = serialization.load_pem_public_key(public_pem)
        signed, raw = f"{head}.{payload}".encode(), _decoded(signature)
        if isinstance(public, rsa.RSAPublicKey) and algorithm == "RS256":
            public.verify(raw, signed, padding.PKCS1v15(), hashes.SHA256())
            return True
        if isinstance(public, ec.EllipticCurvePublicKey) and algorithm in ("ES256", "ES384"):
            half = len(raw) // 2
            encoded = encode_dss_signature(int.from_bytes(raw[:half], "big"), int.from_bytes(raw[half:], "big"))
            public.verify(encoded, signed, ec.ECDSA(hashes.SHA256() if algorithm == "ES256" else hashes.SHA384()))
            return True
    except (ValueError, InvalidSignature):
        return False
    return False


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


# -- etcd ------------------------------------------------------------------------------------------------------------


class _Forwarder:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def port_forward(self, namespace: str, pod: str, port: int) -> Stream:
        if not isinstance(self._client, Forwarding):
            raise BadRequest("this connection can't forward ports")
        return await self._client.port_forward(Key(namespace, pod), port)


async def _check_etcd(client: Client, running: Running, pair: KeyPair, cluster: Key, clock: Clock) -> list[str]:
    """Each member is asked, with a certificate of this CA: only the right one opens the connection."""
    nodes = sorted(each.name for each in running.control_planes)
    return etcd_problems(await Inspector(clock).look(cluster, _Forwarder(client), pair, nodes), nodes)


def etcd_problems(view: EtcdView, nodes: Sequence[str]) -> list[str]:
    if view.error:
        return [f"etcd can't be asked with etcd/ca.key of --pki: {view.error}"]
    members = view.members or ()
    names = {each.name for each in members}
    return [
        *(f"etcd on Node {node}: {problem}" for node, problem in sorted(view.problems.items())),
        *(
            f"etcd member {name or '(not started)'} is not on a control plane Node: remove the member first"
            for name in sorted(names - set(nodes))
        ),
        *(
            f"Node {name} is a control plane without an etcd member: repair or remove it first"
            for name in sorted(set(nodes) - names)
        ),
        *(f"etcd member {each.name} is a learner: wait until it is promoted" for each in members if each.learner),
        *(f"etcd member {id_:x} has the alarm {alarm}: clear it first" for id_, alarm in view.alarms.items()),
    ]
