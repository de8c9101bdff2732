"""What Harvester adds to images, and which it refuses."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from homeport.apiserver.verb.admission import Attributes
from homeport.sim.harvester.admission.refusal import conflicting, invalid, unchangeable
from homeport.sim.harvester.core import Core
from homeport.sim.harvester.kind import CLAIM, IMAGE, STORAGE_CLASS, Json
from homeport.sim.harvester.object import key_of, labels, leaving, notes, status_of

DISPLAY_NAME = "harvesterhci.io/imageDisplayName"
CLASS_NAME = "harvesterhci.io/storageClassName"
_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_DEFAULT = {"numberOfReplicas": "3", "staleReplicaTimeout": "30", "migratable": "true"}
_KEPT = ("nodeSelector", "diskSelector", "numberOfReplicas", "staleReplicaTimeout", "dataLocality", "encrypted")
_IMMUTABLE = ("displayName", "sourceType", "url", "storageClassParameters", "securityParameters", "pvcName")


class ImageRules:
    def __init__(self, core: Core) -> None:
        self._core = core

    def mutate(self, attributes: Attributes) -> None:
        image = attributes.object
        if image is None or leaving(image):
            return
        meta, spec = image["metadata"], image["spec"]
        if name := spec.get("displayName"):
            meta["labels"] = {**labels(image), DISPLAY_NAME: name}
        target = notes(image).get(CLASS_NAME) or spec.get("targetStorageClassName") or self._default_class()
        if attributes.old is None and spec.get("backend", "backingimage") == "backingimage":
            spec["storageClassParameters"] = self._parameters(image)
        if target:
            meta["annotations"] = {CLASS_NAME: target, **notes(image)}
            spec.setdefault("targetStorageClassName", target)

    def _parameters(self, image: Json) -> dict[str, str]:
        named = notes(image).get(CLASS_NAME) or self._default_class()
        found = self._core.mirror.get(STORAGE_CLASS, named) if named else None
        if named and found is None:
            raise unchangeable(f'storageclasses.storage.k8s.io "{named}" not found')
        given = (found.get("parameters") if found else image["spec"].get("storageClassParameters")) or {}
        if found is not None and given.get("backingImage"):
            raise unchangeable("can not use a backing image storageClass as the base storageClass template")
        return {**_DEFAULT, **{key: value for key, value in given.items() if key in _KEPT}}

    def _default_class(self) -> str:
        for each in self._core.mirror.all(STORAGE_CLASS):
            if notes(each).get("storageclass.kubernetes.io/is-default-class") == "true":
                return str(each["metadata"]["name"])
        return ""

    def check(self, attributes: Attributes) -> None:
        image, old = attributes.object, attributes.old
        if image is None or leaving(image):
            return
        if old is not None:
            for field in _IMMUTABLE:
                if image["spec"].get(field) != old["spec"].get(field):
                    what = "storageClassParameters of the VM Image" if field == "storageClassParameters" else field
                    raise invalid(f"{what} cannot be modified", f"spec.{field}")
            return
        self._check_name(image)
        _check_url(image)

    def _check_name(self, image: Json) -> None:
        name = image["spec"].get("displayName", "")
        if not name:
            raise invalid("displayName is required", "spec.displayName")
        if not _LABEL_VALUE.fullmatch(name):
            text = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.'"
            raise invalid(f"displayName is not a valid Kubernetes label value: {text}", "spec.displayName")
        for other in self._core.mirror.all(IMAGE):
            same = labels(other).get(DISPLAY_NAME) == name
            if same and key_of(other) != key_of(image) and key_of(other).namespace == key_of(image).namespace:
                raise conflicting("A resource with the same name exists")

    def check_delete(self, attributes: Attributes) -> None:
        image = attributes.old
        name = status_of(image).get("storageClassName") if image is not None else ""
        if image is None or not name:
            return
        for claim in self._core.mirror.all(CLAIM):
            if claim["spec"].get("storageClassName") == name:
                called = f"{image['metadata']['namespace']}/{image['spec'].get('displayName', '')}"
                raise invalid(f"Cannot delete image {called}: being used by volume {key_of(claim)}", "")


def _check_url(image: Json) -> None:
    kind, url = image["spec"].get("sourceType", "download"), image["spec"].get("url", "")
    if kind not in ("download", "restore"):
        if url:
            raise invalid(f'url should be empty when image source type is "{kind}"', "spec.url")
        return
    if not url:
        raise invalid("url is required", "spec.url")
    try:
        urlsplit(url)
    except ValueError as error:
        raise invalid(f"url is invalid: {error}", "spec.url") from None
