"""Routes to a control plane through an Ingress or a Gateway: applied, and removed when no longer wanted."""

from __future__ import annotations

from homeport.api.meta import Unstructured
from homeport.api.steward.v1alpha1 import IngressState
from homeport.client.absence import find_object
from homeport.client.errors import Invalid, NotFound
from homeport.client.protocol import Client, Key, Write
from homeport.hosted.ownership import NameTaken, is_ours
from homeport.hosted.tenant.route import GATEWAY_PORT, ROUTES, TLS_ROUTE, Route, render_routes, route_host
from homeport.hosted.tenant.scope import TenantScope
from homeport.runtime.outcome import Wait

_RETRY_SECONDS = 60.0


class Exposure:
    """A phase of the reconciler. The control plane works without the routes: they come last."""

    def __init__(self, client: Client, options: Write) -> None:
        self._client = client
        self._options = options

    async def hold(self, scope: TenantScope) -> Wait | None:
        """Raises NameTaken for an object of somebody else with the name of one of ours."""
        routes = render_routes(scope.pod_inputs())
        await self._remove_others(scope, {(each.kind, each.name) for each in routes})
        for each in routes:
            try:
                found = await self._apply(scope, each)
            except NotFound:
                text = (
                    f"this cluster does not serve {each.kind.kind} ({each.kind.api_version}), which the control plane "
                    "needs to be reached by its host name: install its definitions"
                )
                return Wait("RouteKindMissing", text, after=_RETRY_SECONDS, warning=True)
            except Invalid as error:
                return Wait("RouteRefused", str(error), after=_RETRY_SECONDS, warning=True)
            self._note(scope, each, found)
        return None

    async def _apply(self, scope: TenantScope, route: Route) -> Unstructured:
        owners = scope.metadata()["ownerReferences"]
        known = await find_object(self._client, route.kind, Key(scope.key.namespace, route.name))
        if known is not None and not is_ours(known, owners[0]):
            key = Key(scope.key.namespace, route.name)
            raise NameTaken(f"{route.kind.kind} {key} exists and belongs to something else: delete or rename it")
        body = {**route.body, "metadata": {**route.body["metadata"], "ownerReferences": owners}}
        return await self._client.apply(body, self._options, kind=route.kind, force=True)

    async def _remove_others(self, scope: TenantScope, wanted: set[tuple[object, str]]) -> None:
        """Looked for only if there was a route: most clusters do not even have all of the kinds."""
        state = scope.object.status.kubernetes_resources
        if state.ingress is None and state.gateway is None:
            return
        owner = scope.metadata()["ownerReferences"][0]
        for kind in ROUTES:
            for name in (scope.name, scope.part("konnectivity")):
                if (kind, name) in wanted:
                    continue
                key = Key(scope.key.namespace, name)
                try:
                    found = await self._client.get(kind, key)
                    if is_ours(found, owner):
                        await self._client.delete(kind, key, uid=found.uid)
                except NotFound:
                    continue
        state.ingress = state.gateway = None

    def _note(self, scope: TenantScope, route: Route, found: Unstructured) -> None:
        state = scope.object.status.kubernetes_resources
        if route.kind is not TLS_ROUTE:
            balancer = (found.get("status") or {}).get("loadBalancer") or {}
            state.ingress = IngressState(name=found.name, namespace=found.namespace, load_balancer=balancer)
        elif found.name == scope.name:
            host = route_host(scope.pod_inputs())
            point = {
                "type": "Hostname",
                "value": host,
                "port": GATEWAY_PORT,
                "urls": [f"https://{host}:{GATEWAY_PORT}"],
            }
            state.gateway = {"accessPoints": [point], "routeRef": {"name": found.name}}
