"""ImageSync: one image at a provider, brought there once, used again, and kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from homeport.api.butler.v1alpha1 import ButlerConfig, ImageSync, ProviderConfig
from homeport.capi.component import Setup
from homeport.capi.platform import ImageOrder, Images
from homeport.client.protocol import Key
from homeport.infra.error import Misconfigured, Missing, ProviderError
from homeport.platforms.butler.image.file import Files
from homeport.platforms.butler.image.phase import CHECKSUM, checksum_verdict, phase_of_error, put_outcome
from homeport.platforms.butler.name import CONFIG_NAME, finalizer
from homeport.platforms.butler.normal.image import FACTORY, ImageModel, normal_image_sync
from homeport.platforms.butler.provider.access import Accesses, check_access, find_config, probed
from homeport.platforms.butler.provider.attempt import Attempts
from homeport.platforms.butler.provider.site import SiteOf, read_site
from homeport.platforms.butler.reconciler import ButlerReconciler
from homeport.platforms.butler.scope import ProviderScope
from homeport.runtime.cache import key_of
from homeport.runtime.clock import rfc3339
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase
from homeport.runtime.wake import spec_changed

_OBSERVE_SECONDS = 600.0  # whether the image is still there
_FIELD = "spec.providerConfigRef"


ImageScope = ProviderScope[ImageSync]


class ImageSyncReconciler(ButlerReconciler[ImageSync, ImageScope]):
    controller_name = "butler-imagesync"
    kind = ImageSync
    finalizer = finalizer("ImageSync")

    def __init__(self, setup: Setup, accesses: Accesses) -> None:
        super().__init__(setup.manager)
        self._accesses = accesses
        self._files = Files(setup.environment.images)
        self._attempts = Attempts(setup.manager.clock)
        self._configs = setup.manager.informers.get(ProviderConfig).cache
        self._settings = setup.manager.informers.get(ButlerConfig).cache
        self.controller.map(ProviderConfig, self._users_of, predicate=probed)
        self.controller.map(ButlerConfig, self._of_factory, predicate=spec_changed)

    def predicate(self, old: ImageSync | None, new: ImageSync | None) -> bool:
        return old is None or new is None or _written(old) != _written(new)

    def forget(self, key: Key) -> None:
        super().forget(key)
        self._attempts.forget(key)

    def load(self, obj: ImageSync) -> ImageScope:
        return ImageScope(obj)

    async def reconcile_paused(self, scope: ImageScope) -> Wait | None:
        self._accesses.stop_watching(scope.object.metadata.uid)
        return None

    def phases(self, scope: ImageScope) -> Sequence[Phase[ImageScope]]:
        return [self._guarded, self.drop_finalizer] if scope.deleting else [self.hold_finalizer, self._guarded]

    # -- one step ----------------------------------------------------------------------------------------------

    async def _guarded(self, scope: ImageScope) -> Wait | None:
        work = self._release(scope) if scope.deleting else self._converge(scope)
        return await self._attempts.report(
            scope.object, work, shown=_shown, failed=lambda error: self._failed(scope, error)
        )

    async def _converge(self, scope: ImageScope) -> Wait | None:
        status, model = scope.object.status, _model(scope)
        found = await self._site(scope, model)
        order = await self._order(scope, model)
        status.artifact_url, status.artifact_sha256 = order.url, order.sha256
        try:
            outcome = await self._images(found).converge(found.site, order)
        finally:
            status.driver = dict(order.kept)
        put_outcome(status, model, outcome)
        scope.report(CHECKSUM, *checksum_verdict(model, outcome), rfc3339(self.clock.now()))
        scope.timer = Wait("ObserveAgain", after=_OBSERVE_SECONDS, quiet=True)
        return outcome.wait

    async def _release(self, scope: ImageScope) -> Wait | None:
        """None: nothing is left to do at the provider."""
        self._accesses.stop_watching(scope.object.metadata.uid)
        normal = normal_image_sync(scope.object)
        model = normal.model
        if not self.holds_finalizer(scope) or model is None or not model.delete or self._is_shared(scope.object):
            return None
        found = await self._site(scope, model)
        order = ImageOrder(
            uid=scope.object.metadata.uid,
            name=model.name,
            content=model.content(),
            kept=scope.object.status.driver,
            wake=self._waker(scope.key),
        )
        try:
            outcome = await self._images(found).release(found.site, order)
        finally:
            scope.object.status.driver = dict(order.kept)
        return outcome.wait

    def _is_shared(self, sync: ImageSync) -> bool:
        """Another ImageSync uses the image: it stays for that one."""
        ref = sync.status.provider_image_ref
        return bool(ref) and any(
            each.status.provider_image_ref == ref
            and each.metadata.uid != sync.metadata.uid
            and not each.metadata.deletion_timestamp
            for each in self.objects
        )

    def _failed(self, scope: ImageScope, error: ProviderError) -> Wait:
        status = scope.object.status
        status.phase = phase_of_error(status, error)
        more = f" (ProviderConfig {scope.config})" if scope.config else ""
        if scope.deleting and isinstance(error, Misconfigured | Missing):
            more += f"; to leave the image where it is, set spec.deletionPolicy to Retain, or remove {self.finalizer}"
        return self._attempts.failed(scope.key, status, error, more)

    # -- what it is made of ------------------------------------------------------------------------------------

    async def _site(self, scope: ImageScope, model: ImageModel) -> SiteOf:
        config = find_config(model.provider, scope.key.namespace, self._configs, _FIELD)
        scope.config = str(key_of(config))
        if not scope.deleting:
            self._accesses.check_namespace(config, scope.key.namespace, _FIELD)
        site = await read_site(self.client, self._accesses.supports, config)
        if not scope.deleting:
            check_access(site.model, scope.key.namespace, scope.config, _FIELD)
        return site

    def _images(self, found: SiteOf) -> Images:
        images = self._accesses.of(found.support).images
        if images is None:
            raise Misconfigured(f"{found.support.title} does not take images from Homeport: upload the image there")
        return images

    async def _order(self, scope: ImageScope, model: ImageModel) -> ImageOrder:
        obj = scope.object
        order = ImageOrder(
            uid=obj.metadata.uid,
            name=model.name,
            content=model.content(),
            url=model.artifact(self._factory(model)),
            sha256=model.sha256,
            sha512=model.sha512,
            iso=model.format == "iso",
            system=model.os,
            kept=obj.status.driver,
            wake=self._waker(scope.key),
        )
        if model.file:
            order.file, found = await self._files.read(model.file)
            if model.sha256 and model.sha256 != found:
                raise Misconfigured(
                    f"spec.source.sha256: {order.file.path} has the SHA-256 {found}: correct it, or copy the file again"
                )
            order.sha256, order.content = found, model.content(found)
        return order

    def _factory(self, model: ImageModel) -> str:
        config = self._settings.get(Key("", CONFIG_NAME))
        given = config.spec.image_factory if config is not None else None
        if model.factory is not None and given is not None and given.credentials_ref is not None:
            raise Misconfigured(
                "spec.factoryRef: the image factory of ButlerConfig butler asks for credentials, which providers do "
                "not send when they download: download the image, and set spec.source"
            )
        return given.url if given is not None and given.url else FACTORY

    def _waker(self, key: Key) -> Callable[[], None]:
        return lambda: self.controller.queue.add(key)

    # -- whom a change concerns --------------------------------------------------------------------------------

    def _users_of(self, config: ProviderConfig) -> Iterable[Key]:
        """By name alone: which of several of that name is meant may just have changed."""
        return [key_of(each) for each in self.objects if each.spec.provider_config_ref.name == config.metadata.name]

    def _of_factory(self, config: ButlerConfig) -> Iterable[Key]:
        del config
        return [key_of(each) for each in self.objects if each.spec.factory_ref is not None]


def _model(scope: ImageScope) -> ImageModel:
    normal = normal_image_sync(scope.object)
    if normal.model is None:
        raise Misconfigured(normal.text)
    return normal.model


def _shown(sync: ImageSync) -> Any:
    status = sync.status
    return status.phase, status.progress, status.provider_image_ref, status.failure_message


def _written(sync: ImageSync) -> Any:
    meta = sync.metadata
    return meta.generation, meta.deletion_timestamp, meta.annotations, meta.finalizers
