"""JoinTokenRequest: the loop.

The token is stored in the request's Secret before the cluster learns it: whoever goes on after a crash finds the token
that was begun.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterable, Sequence
from typing import Any

from homeport.api.k0smotron.v1beta2 import Cluster, JoinTokenRequest
from homeport.api.meta import Unstructured
from homeport.capi.capi import Capi
from homeport.capi.conversion.codec import parse_seconds
from homeport.capi.k0s.token import (
    JOIN_PORT,
    NAMESPACE,
    BootstrapToken,
    make_token,
    parse_join_token,
    render_join_token,
    render_token,
)
from homeport.capi.object.ownership import controller_of, ensure_owner, owner_reference
from homeport.capi.reconciler import CapiReconciler
from homeport.capi.remote import kubeconfig
from homeport.capi.remote.pki import SECRET, PkiError, secret_data
from homeport.capi.remote.visit import connected
from homeport.client.absence import drop_object, find_object
from homeport.client.config import ConfigError
from homeport.client.errors import AlreadyExists, ApiError, NotFound
from homeport.client.protocol import Key, MergePatch
from homeport.hosted.endpoint import parse_endpoint
from homeport.hosted.k0smotron.grant import is_granted, refusal
from homeport.hosted.k0smotron.name import (
    CLUSTER_LABEL,
    CLUSTER_NAMESPACE_ANNOTATION,
    CLUSTER_UID_LABEL,
    COMPONENT_LABEL,
    ENDPOINT_ANNOTATION,
    JOIN_TOKEN_FINALIZER,
    ROLE_LABEL,
    TOKEN_REQUEST_LABEL,
    shortened,
)
from homeport.hosted.k0smotron.pod.subject import Subject
from homeport.hosted.k0smotron.scope import SUCCESSFUL
from homeport.machinery.condition import Status
from homeport.runtime.clock import parse_time, rfc3339
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope

Json = dict[str, Any]

SECRET_CREATED = "JoinTokenSecretCreated"  # noqa: S105
TOKEN_KEY = "token"  # noqa: S105
_RETRY_SECONDS = 15.0


class TokenScope(Scope[JoinTokenRequest]):
    def __init__(self, obj: JoinTokenRequest, cluster: Cluster | None) -> None:
        super().__init__(obj)
        self.cluster = cluster
        self.secret: Unstructured | None = None
        self.token: BootstrapToken | None = None

    @property
    def of(self) -> Cluster:
        assert self.cluster is not None
        return self.cluster

    @property
    def granted(self) -> bool:
        """A token lets machines into the cluster: its owner decides who in other namespaces may have one."""
        held = {} if self.cluster is None else self.cluster.metadata.annotations
        return is_granted(cluster_key(self.object).namespace, held, self.key.namespace)

    def report(self, kind: str, status: Status, reason: str, message: str, now: str) -> bool | None:
        if kind == SECRET_CREATED:
            done = status == "True"
            reason = "Created" if done else reason
            self.object.status.deprecated.v1beta1.reconciliation_status = SUCCESSFUL if done else message or reason
        return super().report(kind, status, reason, message, now)


def cluster_key(request: JoinTokenRequest) -> Key:
    """Requests of v1beta1 may be in another namespace than their Cluster."""
    namespace = request.metadata.annotations.get(CLUSTER_NAMESPACE_ANNOTATION) or request.metadata.namespace
    return Key(namespace, request.spec.cluster_name)


class JoinTokenRequestReconciler(CapiReconciler[JoinTokenRequest, TokenScope]):
    controller_name = "k0smotron-jointokenrequest"
    kind = JoinTokenRequest
    field_manager = "homeport-k0smotron"
    condition = SECRET_CREATED
    finalizer = JOIN_TOKEN_FINALIZER

    def __init__(self, capi: Capi) -> None:
        super().__init__(capi.manager)
        self._capi = capi
        self._clusters = capi.manager.informers.get(Cluster).cache
        self.objects.add_index("cluster", lambda each: [str(cluster_key(each))])

    def requests_of(self, cluster: Cluster) -> Iterable[Key]:
        key = Key(cluster.metadata.namespace, cluster.metadata.name)
        return [Key(each.metadata.namespace, each.metadata.name) for each in self.objects.by("cluster", str(key))]

    def load(self, obj: JoinTokenRequest) -> TokenScope:
        return TokenScope(obj, self._clusters.get(cluster_key(obj)))

    def phases(self, scope: TokenScope) -> Sequence[Phase[TokenScope]]:
        if scope.deleting:
            return [self._invalidate, self.drop_finalizer]
        return [
            self.hold_finalizer,
            self._await_cluster,
            self._hold_owner,
            self._hold_secret,
            self._await_expiry,
            self._hold_token,
        ]

    def expected(self, scope: TokenScope, error: Exception) -> Wait | None:
        if isinstance(error, PkiError):
            return Wait("CertificatesUnusable", str(error), after=_RETRY_SECONDS)
        return None

    # -- phases ------------------------------------------------------------------------------------------------

    async def _await_cluster(self, scope: TokenScope) -> Wait | None:
        key = cluster_key(scope.object)
        if not scope.granted:
            text = refusal(f"k0smotron Cluster {key}", scope.key.namespace)
            return Wait("NamespaceNotAllowed", text, warning=True)
        if scope.cluster is None:
            return Wait("WaitingForCluster", f"k0smotron Cluster {key} does not exist: create it, or correct the name")
        if scope.cluster.metadata.deletion_timestamp:
            return Wait("ClusterDeleting", f"k0smotron Cluster {key} is being deleted")
        if ENDPOINT_ANNOTATION not in scope.cluster.metadata.annotations:
            return Wait("WaitingForControlPlane", f"k0smotron Cluster {key} has no address yet")
        return None

    async def _hold_owner(self, scope: TokenScope) -> Wait | None:
        """Requests go with their Cluster; across namespaces that is done by its own controller."""
        uid = scope.of.metadata.uid
        scope.object.status.deprecated.v1beta1.cluster_uid = uid
        if scope.of.metadata.namespace != scope.key.namespace:
            if scope.object.metadata.labels.get(CLUSTER_UID_LABEL) != uid:
                body = {"metadata": {"uid": scope.object.metadata.uid, "labels": {CLUSTER_UID_LABEL: uid}}}
                written = await self.client.patch(JoinTokenRequest, scope.key, MergePatch(body), self._write)
                scope.update_metadata(written)
            return None
        reference = owner_reference(scope.of, controller=True)
        scope.update_metadata(await ensure_owner(self.client, JoinTokenRequest, scope.object, reference, self._write))
        return None

    async def _hold_secret(self, scope: TokenScope) -> Wait | None:
        found = await self._secret(scope)
        if found is None:
            token = make_token()
            text = render_join_token(
                token.text, scope.object.spec.role, server=self._server(scope), ca=await self._authority(scope)
            )
            with contextlib.suppress(AlreadyExists):
                await self.client.create(_render(scope, text), self._write, kind=SECRET)
            found = await self._secret(scope)
        owner = None if found is None else controller_of(found)
        if found is None or owner is None or owner["uid"] != scope.object.metadata.uid:
            text = f"Secret {scope.key} exists and belongs to something else: delete it, or choose another name"
            return Wait("OwnedByAnother", text, after=_RETRY_SECONDS, warning=True)
        scope.secret = found
        scope.token = parse_join_token(secret_data(found, TOKEN_KEY).decode())
        if scope.token is None:
            text = f"Secret {scope.key}: data[{TOKEN_KEY}] is not a join token: delete the request and create another"
            return Wait("TokenUnusable", text, warning=True)
        return None

    async def _secret(self, scope: TokenScope) -> Unstructured | None:
        return await find_object(self.client, SECRET, scope.key)

    def _server(self, scope: TokenScope) -> str:
        found = parse_endpoint(scope.of.metadata.annotations[ENDPOINT_ANNOTATION])
        assert found is not None
        port = found.port if scope.object.spec.role == "worker" else JOIN_PORT
        return kubeconfig.server_url(found.host, port)

    async def _authority(self, scope: TokenScope) -> bytes:
        subject = Subject.of(scope.of, {})
        key = Key(subject.namespace, subject.certificate("ca"))
        try:
            return secret_data(await self.client.get(SECRET, key), "tls.crt")
        except NotFound:
            raise PkiError(f"Secret {key} does not exist yet") from None

    def _expires(self, scope: TokenScope) -> float | None:
        seconds = parse_seconds(scope.object.spec.expiry or "0s")
        if not seconds or scope.secret is None:
            return None
        return parse_time(str(scope.secret.metadata["creationTimestamp"])) + seconds

    async def _await_expiry(self, scope: TokenScope) -> Wait | None:
        expires = self._expires(scope)
        if expires is None:
            return None
        left = expires - self.clock.now()
        if left > 0:
            scope.timer = Wait("TokenExpires", after=left + 1.0, quiet=True)
            return None
        text = f"the token expired at {rfc3339(expires)}: create another JoinTokenRequest"
        return Wait("TokenExpired", text)

    async def _hold_token(self, scope: TokenScope) -> Wait | None:
        token, expires = scope.token, self._expires(scope)
        assert token is not None
        made = scope.object.status.token_id == token.id
        body = render_token(
            token,
            scope.object.spec.role,
            expires="" if expires is None else rfc3339(expires),
            request=str(scope.key),
        )
        try:
            async with connected(self._capi, self.client, cluster_key(scope.object)) as client:
                if made:
                    await client.get(SECRET, Key(NAMESPACE, token.name))
                else:
                    with contextlib.suppress(AlreadyExists):
                        await client.create(body, self._write, kind=SECRET)
        except NotFound:
            if made:
                text = "the token was removed from the cluster: create another JoinTokenRequest"
                return Wait("TokenInvalidated", text)
            text = f"k0smotron Cluster {cluster_key(scope.object)} has no kubeconfig yet"
            return Wait("WaitingForControlPlane", text, after=_RETRY_SECONDS)
        except (ApiError, ConfigError, TimeoutError) as error:
            text = f"k0smotron Cluster {cluster_key(scope.object)} does not answer: {error}"
            return Wait("WaitingForControlPlane", text, after=_RETRY_SECONDS)
        scope.object.status.token_id = token.id
        return None

    async def _invalidate(self, scope: TokenScope) -> Wait | None:
        """A cluster that goes takes its tokens with it."""
        if scope.cluster is None or scope.cluster.metadata.deletion_timestamp:
            return None
        secret = await self._secret(scope)
        owner = None if secret is None else controller_of(secret)
        token_id = scope.object.status.token_id
        if not scope.granted and not token_id:
            return None  # nothing was ever made there
        if secret is not None and owner is not None and owner["uid"] == scope.object.metadata.uid:
            token = parse_join_token(secret_data(secret, TOKEN_KEY).decode())
            token_id = token_id or ("" if token is None else token.id)
        if not token_id:
            return None
        try:
            async with connected(self._capi, self.client, cluster_key(scope.object)) as client:
                await drop_object(client, SECRET, Key(NAMESPACE, BootstrapToken(token_id, "").name))
        except NotFound:
            return None  # without a kubeconfig no token was ever made
        except (ApiError, ConfigError, TimeoutError) as error:
            text = f"can't remove the token from k0smotron Cluster {cluster_key(scope.object)}: {error}"
            return Wait("WaitingForControlPlane", text, after=_RETRY_SECONDS)
        return None


def _render(scope: TokenScope, text: str) -> Json:
    request = scope.object
    labels = {
        CLUSTER_LABEL: shortened(request.spec.cluster_name),
        ROLE_LABEL: request.spec.role,
        TOKEN_REQUEST_LABEL: shortened(request.metadata.name),
        COMPONENT_LABEL: "jointoken",
        **request.metadata.labels,
    }
    metadata = {
        "name": request.metadata.name,
        "namespace": request.metadata.namespace,
        "labels": labels,
        "ownerReferences": [owner_reference(request, controller=True)],
    }
    data = {TOKEN_KEY: base64.b64encode(text.encode()).decode()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data}
