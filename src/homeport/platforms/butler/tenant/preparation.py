"""What must be known before a tenant cluster is written: its settings, provider, images and addresses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from homeport.api.butler.v1alpha1 import TenantCluster
from homeport.capi.version import parse
from homeport.platforms.butler.normal.tenant import TenantModel, name_faults
from homeport.platforms.butler.team.quota import Refusal
from homeport.platforms.butler.team.verdict import Verdict
from homeport.platforms.butler.tenant import state
from homeport.platforms.butler.tenant.addresses import Addresses
from homeport.platforms.butler.tenant.composition import Composition
from homeport.platforms.butler.tenant.drawing import draw, kept_image, worker_version
from homeport.platforms.butler.tenant.image import choose_image
from homeport.platforms.butler.tenant.name import is_part_of
from homeport.platforms.butler.tenant.provider import ProviderFault, Providers
from homeport.platforms.butler.tenant.scope import TenantScope
from homeport.platforms.butler.tenant.selection import Selection
from homeport.platforms.butler.tenant.state import Finding
from homeport.runtime.cache import key_of
from homeport.runtime.clock import Clock, rfc3339
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase

Judge = Callable[[TenantCluster], Verdict]
_VERSION = "spec.kubernetesVersion"
_REFUSED_BY = {
    state.QUOTA: ("QuotaExceeded", "EnvQuotaExceeded", "PerMemberCapExceeded"),
    state.ACCESS: ("ProviderAccessDenied",),
}


class Preparation:
    """Each phase answers one question; the first that has no answer ends the preparation, and says what to do."""

    def __init__(
        self,
        judge: Judge,
        providers: Providers,
        composition: Composition,
        addresses: Addresses,
        selection: Selection,
        clock: Clock,
    ) -> None:
        self._judge = judge
        self._providers = providers
        self._composition = composition
        self._clock = clock
        self._addresses = addresses
        self._selection = selection

    def phases(self) -> Sequence[Phase[TenantScope]]:
        return [
            self._read,
            self._hold_namespace,
            self._find_provider,
            self._choose_images,
            self._addresses.claim,
            self._selection.choose,
            self._draw,
        ]

    def note(self, scope: TenantScope, finding: Finding) -> Wait | None:
        scope.note(finding, rfc3339(self._clock.now()))
        return None if finding.good else Wait(finding.reason, finding.message, warning=finding.fatal)

    # -- settings ----------------------------------------------------------------------------------------------

    async def _read(self, scope: TenantScope) -> Wait | None:
        wrong = name_faults(scope.key.name) if scope.children.namespace is None else []
        if wrong:  # on another Kubernetes no webhook refused it
            text = "; ".join(map(str, wrong))
            return Wait("InvalidConfiguration", f"{text}; delete it, and create it with another name", warning=True)
        verdict = self._judge(scope.read)
        scope.model, scope.chosen = verdict.normal.model, verdict.provider
        if scope.model is None:
            return Wait("InvalidConfiguration", verdict.normal.text, warning=True)
        scope.object.status.effective = list(scope.model.effective)
        return self._report_refusals(scope, verdict) or self._check_version(scope, scope.model)

    def _report_refusals(self, scope: TenantScope, verdict: Verdict) -> Wait | None:
        """A cluster that exists is kept though the platform would not have it today, but it does not grow."""
        refusals: Sequence[Refusal] = verdict.refusals
        for kind, reasons in _REFUSED_BY.items():
            found = next((each for each in refusals if each.reason in reasons), None)
            finding = Finding(kind) if found is None else Finding(kind, found.reason, f"{found.field}: {found.message}")
            self.note(scope, finding)
        if scope.children.cluster is not None:
            refusals = verdict.growth
        if not refusals:
            return None
        text = "\n".join(f"{each.field}: {each.message}" for each in refusals)
        return Wait(refusals[0].reason, text, warning=True)

    def _check_version(self, scope: TenantScope, model: TenantModel) -> Wait | None:
        """A control plane that runs goes one minor version at a time, and never back."""
        running = scope.children.version
        if not running:
            return None
        old, new = parse(running), parse(model.version)
        if new < old:
            text = f"{_VERSION}: {model.version} is older than {running}, which the cluster runs: set that again"
        elif new.line > (old.major, old.minor + 1):
            between = f"v{old.major}.{old.minor + 1}"
            text = f"{_VERSION}: {model.version} is too far from {running}: upgrade to a release of {between} first"
        else:
            return None
        scope.model = replace(model, version=running)
        return Wait("UnsupportedUpgrade", text, warning=True)

    async def _hold_namespace(self, scope: TenantScope) -> Wait | None:
        found = scope.children.namespace
        if scope.children.namesakes and scope.children.cluster is None:
            # It has the addresses that this one would get, which are kept by the name of the TenantCluster.
            other = key_of(scope.children.namesakes[0])
            text = (
                f"Cluster {other} of an earlier TenantCluster with this name still exists: delete it with "
                f"`kubectl delete cluster -n {other.namespace} {other.name}`, or use another name"
            )
            return Wait("NameInUse", text, after=60.0, warning=True)
        if found is not None and not is_part_of(found.metadata.get("labels") or {}, scope.key):
            text = f"Namespace {scope.namespace} exists and belongs to something else: delete it, or use another name"
            return Wait("NamespaceTaken", text, warning=True)
        if found is not None and found.metadata.get("deletionTimestamp"):
            return Wait("NamespaceTerminating", f"Namespace {scope.namespace} is being deleted", after=5.0)
        if not scope.observed_only:
            await self._composition.hold_namespace(scope)
        return None

    # -- provider ----------------------------------------------------------------------------------------------

    async def _find_provider(self, scope: TenantScope) -> Wait | None:
        assert scope.model is not None
        try:
            provider = await self._providers.read(scope.chosen, scope.model.overrides)
        except ProviderFault as fault:
            return self.note(scope, Finding(state.PROVIDER, fault.reason, fault.message))
        if mismatch := provider.mismatch(scope.children.cluster):
            return self.note(scope, Finding(state.PROVIDER, "ProviderMismatch", mismatch))
        scope.provider = provider
        scope.object.status.provider = provider.support.type
        scope.object.status.provider_config_ref = provider.reference
        scope.provider_state = provider.finding()
        wait = self.note(scope, scope.provider_state)
        # What exists is kept, and changed as far as the provider lets us: its machines report what does not work.
        return None if scope.children.cluster is not None else wait

    async def _choose_images(self, scope: TenantScope) -> Wait | None:
        model, provider = scope.model, scope.provider
        assert model is not None
        assert provider is not None
        said: list[str] = []
        for pool in model.pools:
            choice = choose_image(
                provider.images,
                pool.os.type,
                worker_version(scope, pool.name),
                given=pool.os.image_ref,
                configured=provider.image,
                kept=kept_image(scope, pool.name),
            )
            if not choice.name:
                return self.note(scope, Finding(state.IMAGE, "ImageNotFound", choice.message))
            scope.images[pool.name] = choice.name
            said.append(choice.message)
        return self.note(scope, Finding(state.IMAGE, message="; ".join(dict.fromkeys(said))))

    async def _draw(self, scope: TenantScope) -> Wait | None:
        scope.blueprint = draw(scope)
        return None
