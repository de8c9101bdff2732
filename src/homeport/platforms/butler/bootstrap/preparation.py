"""What has to be known before anything is created: the model, the provider and the image."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from homeport.platforms.butler.bootstrap import state
from homeport.platforms.butler.bootstrap.plan import plan_machines
from homeport.platforms.butler.bootstrap.scope import BootstrapScope
from homeport.platforms.butler.normal.bootstrap import normal_cluster_bootstrap
from homeport.platforms.butler.normal.lookup import Found, choose_provider
from homeport.platforms.butler.team.verdict import World, visible_providers
from homeport.platforms.butler.tenant.image import Image
from homeport.platforms.butler.tenant.provider import Provider, ProviderFault, Providers
from homeport.platforms.butler.tenant.state import Finding
from homeport.runtime.cache import key_of
from homeport.runtime.clock import Clock, rfc3339
from homeport.runtime.outcome import Wait

_SYSTEM = "talos"


class Preparation:
    def __init__(self, providers: Providers, world: Callable[[], World], clock: Clock) -> None:
        self._providers = providers
        self._world = world
        self._clock = clock

    async def read(self, scope: BootstrapScope) -> Wait | None:
        normal = normal_cluster_bootstrap(scope.object)
        if normal.model is None:
            scope.failed = True
            return Wait("InvalidConfiguration", normal.text, warning=True)
        scope.model = normal.model
        scope.plans = plan_machines(normal.model)
        scope.endpoint = normal.model.vip or _only_address(scope)
        return None

    async def find_provider(self, scope: BootstrapScope) -> Wait | None:
        found = self._choose(scope)
        try:
            provider = await self._providers.read(found, {})
        except ProviderFault as fault:
            return self._note(scope, Finding(state.PROVIDER, fault.reason, fault.message))
        scope.provider = provider
        wanted, has = scope.model.type, provider.support.type
        if wanted and wanted != has:
            text = f"spec.provider: {wanted}, but ProviderConfig {key_of(provider.config)} is of type {has}"
            return self._note(scope, Finding(state.PROVIDER, "ProviderMismatch", text))
        wait = self._note(scope, provider.finding())
        # Machines that exist go on though their provider does not answer for a while.
        return wait if len(scope.children.machines) < len(scope.plans) else None

    def _choose(self, scope: BootstrapScope) -> Found:
        """What its machines run on already stays; otherwise object, ButlerConfig, default, the only one."""
        namespace, own = scope.key.namespace, scope.model.provider
        machines = scope.children.machines.values()
        used = next((each.spec.provider_ref for each in machines if each.spec.provider_ref is not None), None)
        world = self._world()
        refs = (("spec.providerRef", own or used), ("ButlerConfig", world.settings.provider))
        among = world.providers if own is not None else visible_providers(world, namespace)
        found = choose_provider(namespace, among, *refs)
        return replace(found, message=found.message.replace("spec.providerConfigRef", "spec.providerRef"))

    async def choose_image(self, scope: BootstrapScope) -> Wait | None:
        used = next((each.spec.image for each in scope.children.machines.values() if each.spec.image), "")
        name, message = (used, f"machines use image {used}") if used else choose_talos(scope.provider)
        if not name:
            return self._note(scope, Finding(state.IMAGE, "ImageNotFound", message))
        scope.image = used or scope.provider.id_of(name)
        return self._note(scope, Finding(state.IMAGE, message=message))

    def _note(self, scope: BootstrapScope, finding: Finding) -> Wait | None:
        wait = scope.note(finding, rfc3339(self._clock.now()))
        scope.failed = scope.failed or (wait is not None and finding.fatal)
        return wait


def choose_talos(provider: Provider) -> tuple[str, str]:
    """The image, and why. The one of the ProviderConfig counts unless it is known to have another system."""
    images: Sequence[Image] = provider.images
    known = {key: each for each in images for key in (each.id, each.name) if key}
    named = provider.image
    if named and (named not in known or known[named].os in (_SYSTEM, "")):
        return named, f"machines use image {named} of the ProviderConfig"
    fitting = sorted((each.name for each in images if each.os == _SYSTEM), reverse=True)
    other = (
        f"image {named} of the ProviderConfig is {known[named].os}" if named else "the ProviderConfig names no image"
    )
    if fitting:
        return fitting[0], f"machines use image {fitting[0]}, which is Talos; {other}"
    listed = ", ".join(sorted(f"{each.name} ({each.os or 'unknown'})" for each in images)[:8]) or "none"
    text = f"management clusters run Talos: {other}, and the provider has no image with Talos (it has: {listed})"
    return "", f"{text}. Upload one, for example talos-1.9, and name it in the ProviderConfig"


def _only_address(scope: BootstrapScope) -> str:
    """Of the only control plane, once it has one."""
    request = scope.children.machines.get(scope.plans[0].name)
    return request.status.ip_address if request is not None else ""
