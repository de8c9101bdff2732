"""Patches by content type: what a PATCH makes of an object."""

from __future__ import annotations

from homeport.apiserver.resource import Json
from homeport.apiserver.target import Target
from homeport.client.errors import BadRequest, Invalid, UnsupportedMediaType
from homeport.machinery.patch import PatchError, json_patch, merge_patch
from homeport.machinery.strategic import strategic_merge

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


def patched(target: Target, patch_type: str, patch: object, base: Json) -> Json:
    try:
        if patch_type == JSON_PATCH:
            result = json_patch(base, patch)
        elif patch_type == MERGE_PATCH:
            if not isinstance(patch, dict):
                raise BadRequest("a merge patch must be an object")
            result = merge_patch(base, patch)
        elif patch_type == STRATEGIC_PATCH and not target.served.custom and target.version.schema is not None:
            if not isinstance(patch, dict):
                raise BadRequest("a strategic merge patch must be an object")
            result = strategic_merge(base, patch, target.version.schema)
        else:
            raise UnsupportedMediaType(_unsupported_patch(target.served.custom))
    except PatchError as error:
        if patch_type == JSON_PATCH and error.index >= 0:
            why = f"the server rejected our request due to an error in our request: {error}"
            raise Invalid(why) from error
        raise BadRequest(str(error)) from error
    if not isinstance(result, dict):
        raise BadRequest("the patch leaves no object")
    return result


def _unsupported_patch(custom: bool) -> str:
    accepted = (
        [JSON_PATCH, MERGE_PATCH, APPLY_PATCH] if custom else [JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH]
    )
    listed = ", ".join(accepted)
    return f"the body of the request was in an unknown format - accepted media types include: {listed}"
