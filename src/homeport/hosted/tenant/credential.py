"""Certificates and kubeconfigs of a TenantControlPlane: made, kept, and renewed before they expire."""

from __future__ import annotations

from collections.abc import Callable

from homeport.api.steward.v1alpha1 import CertificatesState, EtcdCertificates, KubeconfigsState
from homeport.capi.name import CLUSTER_NAME_LABEL, SECRET_TYPE
from homeport.capi.remote import kubeconfig as stored
from homeport.capi.remote import pki
from homeport.capi.remote.pki import KeyPair, PkiError, Purpose
from homeport.client.protocol import Client, Write
from homeport.hosted import kubeconfig
from homeport.hosted import name as names
from homeport.hosted.certificate import api_server_hosts, renew_at, sign_client, sign_server, stale_client, stale_server
from homeport.hosted.secret import Data, Held, SecretKeeper
from homeport.hosted.tenant.route import route_host
from homeport.hosted.tenant.scope import TenantScope
from homeport.hosted.tenant.volume import PKI_FILES
from homeport.runtime.outcome import Wait

ADMIN_USER, ADMIN_GROUP = "kubernetes-admin", "kubeadm:cluster-admins"
SUPER_USER, SUPER_GROUP = "kubernetes-super-admin", "system:masters"
MANAGER_USER = "system:kube-controller-manager"
SCHEDULER_USER = "system:kube-scheduler"
KONNECTIVITY_USER = "system:konnectivity-server"
_LOCALHOST = "localhost"

# Secret of a certificate, why the one that exists must be signed again (or ''), and how.
Leaf = tuple[str, Callable[[KeyPair], str], Callable[[], KeyPair]]
# Secrets of kubeconfigs whose change restarts the Pods.
_MOUNTED = (names.CONTROLLER_MANAGER, names.SCHEDULER)

# What is needed before the Pods can start: of each Secret the purpose that `pki` knows, or None for a leaf.
_AUTHORITIES: tuple[tuple[str, Purpose], ...] = (
    (names.CA, "ca"),
    (names.FRONT_PROXY_CA, "proxy"),
    (names.SERVICE_ACCOUNT, "sa"),
)


# What breaks, without anybody being told, if another one is made.
_TRUSTED_BY = {
    names.CA: "nodes and kubeconfigs trust this CA",
    names.SERVICE_ACCOUNT: "tokens of service accounts are signed with this key",
}


class AuthorityLost(PkiError):
    """A key that others trust is gone, and another one is not the same."""


Files = dict[str, tuple[str, str, tuple[str, ...]]]


class Credentials:
    def __init__(self, client: Client, options: Write, proxy: str = "") -> None:
        """`proxy`: through which endpoints are reached from here; kubeconfigs of users name it."""
        self._client = client
        self._options = options
        self._proxy = proxy

    def keeper(self, scope: TenantScope) -> SecretKeeper:
        return SecretKeeper(self._client, self._options, scope.key.namespace, scope.metadata())

    # -- certificates ------------------------------------------------------------------------------------------

    async def hold_certificates(self, scope: TenantScope) -> Wait | None:
        """Raises PkiError when a CA that a user brought can't be used: it is never replaced."""
        keeper = self.keeper(scope)
        pairs: dict[str, KeyPair] = {}
        held: dict[str, Held] = {}
        for suffix, purpose in _AUTHORITIES:
            held[suffix] = await self._hold_authority(scope, keeper, suffix, purpose)
            pairs[suffix] = _pair(held[suffix].data, *PKI_FILES[suffix])
        scope.ca = pairs[names.CA]
        for suffix, stale, sign in self._leaves(scope, pairs[names.CA], pairs[names.FRONT_PROXY_CA]):
            held[suffix] = await _hold_leaf(scope, keeper, suffix, stale, sign)
        for suffix, each in held.items():
            scope.findings.checksums[suffix] = each.checksum
        self._note(scope, held)
        return None

    def _leaves(self, scope: TenantScope, ca: KeyPair, proxy: KeyPair) -> tuple[Leaf, ...]:
        endpoint = scope.findings.endpoint
        network = scope.spec.network_profile
        hosts = api_server_hosts(
            scope.name,
            scope.key.namespace,
            endpoint=endpoint.host if endpoint else "",
            service_cidr=network.service_cidr,
            domain=network.cluster_domain,
            extra=[*network.cert_sans, network.address, route_host(scope.pod_inputs())],
        )
        now = scope.now
        return (
            (
                names.API_SERVER,
                lambda pair: stale_server(pair, ca, hosts, now=now),
                lambda: sign_server(ca, hosts, now=now),
            ),
            (
                names.KUBELET_CLIENT,
                lambda pair: stale_client(pair, ca, "kube-apiserver-kubelet-client", (SUPER_GROUP,), now=now),
                lambda: sign_client(ca, "kube-apiserver-kubelet-client", (SUPER_GROUP,), now=now),
            ),
            (
                names.FRONT_PROXY_CLIENT,
                lambda pair: stale_client(pair, proxy, "front-proxy-client", now=now),
                lambda: sign_client(proxy, "front-proxy-client", now=now),
            ),
        )

    async def _hold_authority(self, scope: TenantScope, keeper: SecretKeeper, suffix: str, purpose: Purpose) -> Held:
        """Used as it is, after a look whether it can work; made if it is missing."""
        certificate, key = PKI_FILES[suffix]
        name = scope.part(suffix)
        known = await keeper.read(name)
        if known is None or not (known.get(certificate) or known.get("tls.crt")):
            if _is_trusted(scope, suffix):
                raise AuthorityLost(
                    f"Secret {scope.key.namespace}/{name} is missing or empty, and {_TRUSTED_BY[suffix]}: it is not "
                    "created again for a control plane that has one; restore it from a backup, or delete the "
                    "TenantControlPlane and create it again"
                )
            known = await self._make_authority(scope, keeper, suffix, purpose)
        held = Held(name, known, False)
        if not held.data.get(certificate):  # a user brought it, in the form of Cluster API
            copy = {**held.data, certificate: held.data["tls.crt"], key: held.data.get("tls.key", b"")}
            held = await keeper.hold_exact(name, copy)
        pair = _pair(held.data, certificate, key)
        pki.check(pair, purpose, where=f"Secret {scope.key.namespace}/{name}", now=scope.now)
        return held

    async def _make_authority(self, scope: TenantScope, keeper: SecretKeeper, suffix: str, purpose: Purpose) -> Data:
        certificate, key = PKI_FILES[suffix]
        made = (await pki.generate([purpose], now=scope.now))[purpose]
        data = {certificate: made.certificate, key: made.key}
        if suffix == names.CA:  # under these names the rest of Cluster API reads it
            data |= {"tls.crt": made.certificate, "tls.key": made.key}
        of_cluster = scope.object.metadata.labels.get(CLUSTER_NAME_LABEL) == scope.name and suffix == names.CA

        def stale(found: Data) -> str:
            return "" if found.get(certificate) or found.get("tls.crt") else "it has no certificate"

        type_ = SECRET_TYPE if of_cluster else "Opaque"
        return (await keeper.hold(scope.part(suffix), stale, lambda found: {**found, **data}, type_=type_)).data

    def _note(self, scope: TenantScope, held: dict[str, Held]) -> None:
        before = scope.object.status.certificates
        scope.object.status.certificates = CertificatesState(
            ca=scope.noted(held[names.CA], before.ca),
            api_server=scope.noted(held[names.API_SERVER], before.api_server),
            api_server_kubelet_client=scope.noted(held[names.KUBELET_CLIENT], before.api_server_kubelet_client),
            front_proxy_ca=scope.noted(held[names.FRONT_PROXY_CA], before.front_proxy_ca),
            front_proxy_client=scope.noted(held[names.FRONT_PROXY_CLIENT], before.front_proxy_client),
            sa=scope.noted(held[names.SERVICE_ACCOUNT], before.sa),
            etcd=before.etcd or EtcdCertificates(),
        )

    # -- kubeconfigs -------------------------------------------------------------------------------------------

    async def hold_kubeconfigs(self, scope: TenantScope) -> Wait | None:
        endpoint = scope.findings.endpoint
        assert endpoint is not None
        keeper, port = self.keeper(scope), scope.spec.network_profile.port
        outside = f"https://{endpoint}"
        beside = f"https://{scope.name}.{scope.key.namespace}.svc:{port}"
        within = f"https://127.0.0.1:{port}"
        admin = await self._hold(
            scope,
            keeper,
            names.ADMIN,
            {
                "admin.conf": (outside, ADMIN_USER, (ADMIN_GROUP,)),
                "admin.svc": (beside, ADMIN_USER, (ADMIN_GROUP,)),
                "super-admin.conf": (outside, SUPER_USER, (SUPER_GROUP,)),
                "super-admin.svc": (beside, SUPER_USER, (SUPER_GROUP,)),
            },
        )
        manager = await self._hold(
            scope, keeper, names.CONTROLLER_MANAGER, {"controller-manager.conf": (within, MANAGER_USER, ())}
        )
        scheduler = await self._hold(scope, keeper, names.SCHEDULER, {"scheduler.conf": (within, SCHEDULER_USER, ())})
        if scope.spec.addons.konnectivity is not None:
            files: Files = {"konnectivity-server.conf": (within, KONNECTIVITY_USER, ())}
            held = await self._hold(scope, keeper, names.KONNECTIVITY_KUBECONFIG, files)
            scope.findings.checksums[names.KONNECTIVITY_KUBECONFIG] = held.checksum
        scope.admin = admin.data["super-admin.conf"]
        for suffix, each in zip(_MOUNTED, (manager, scheduler), strict=True):
            scope.findings.checksums[suffix] = each.checksum
        before = scope.object.status.kubeconfig
        scope.object.status.kubeconfig = KubeconfigsState(
            admin=scope.noted(admin, before.admin),
            controller_manager=scope.noted(manager, before.controller_manager),
            scheduler=scope.noted(scheduler, before.scheduler),
        )
        return None

    async def _hold(
        self,
        scope: TenantScope,
        keeper: SecretKeeper,
        suffix: str,
        files: Files,
    ) -> Held:
        """One Secret with several kubeconfigs: file > (server, user, groups)."""

        outside = f"https://{scope.findings.endpoint}"

        def why(data: Data, file: str) -> str:
            server, user, groups = files[file]
            found = data.get(file)
            if not found:
                return "it is missing"
            proxy = self._proxy if server == outside else ""
            return kubeconfig.stale(found, server, scope.ca, user, groups, now=scope.now, proxy=proxy)

        def make(data: Data) -> Data:
            made = dict(data)
            for file, (server, user, groups) in files.items():
                if why(data, file):
                    name = _LOCALHOST if server.startswith("https://127.0.0.1:") else ""
                    content = kubeconfig.make(
                        scope.name, server, scope.ca, user, groups, now=scope.now, tls_server_name=name
                    )
                    through = self._proxy and server == outside
                    made[file] = stored.through(content, self._proxy) if through else content
            return made

        held = await keeper.hold(scope.part(suffix), lambda data: "".join(why(data, file) for file in files), make)
        for file in files:
            due = kubeconfig.renewal(held.data[file])
            if due is not None:
                scope.findings.renewals.append(due)
        return held


async def _hold_leaf(
    scope: TenantScope,
    keeper: SecretKeeper,
    suffix: str,
    stale: Callable[[KeyPair], str],
    sign: Callable[[], KeyPair],
) -> Held:
    certificate, key = PKI_FILES[suffix]

    def make(_: Data) -> Data:
        made = sign()
        return {certificate: made.certificate, key: made.key}

    held = await keeper.hold(scope.part(suffix), lambda data: stale(_pair(data, certificate, key)), make)
    scope.findings.renewals.append(renew_at(held.data[certificate]))
    return held


def _is_trusted(scope: TenantScope, suffix: str) -> bool:
    known = scope.object.status.certificates
    noted = {names.CA: known.ca, names.SERVICE_ACCOUNT: known.sa}.get(suffix)
    return noted is not None and bool(noted.checksum)


def _pair(data: Data, certificate: str, key: str) -> KeyPair:
    return KeyPair(data.get(certificate, b""), data.get(key, b""))


__all__ = ["AuthorityLost", "Credentials", "PkiError"]
