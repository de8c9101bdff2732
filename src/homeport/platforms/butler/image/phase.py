"""The phase and conditions of an ImageSync, from what its provider answered. No I/O.

`Failed` is for what somebody has to correct. It is never final: the provider is asked again at `status.nextAttempt`,
and as soon as the ImageSync, its ProviderConfig or a Secret changes.
"""

from __future__ import annotations

from typing import Literal

from homeport.api.butler.v1alpha1.machine import ImageSyncStatus
from homeport.capi.platform import ImageOutcome
from homeport.infra.error import ProviderError, Stale, can_not_ask
from homeport.platforms.butler.normal.image import ImageModel

PENDING, DOWNLOADING, UPLOADING, READY, FAILED = "Pending", "Downloading", "Uploading", "Ready", "Failed"
CHECKSUM = "ChecksumVerified"

Verdict = tuple[Literal["True", "False", "Unknown"], str, str]  # status, reason and message of a condition


def put_outcome(status: ImageSyncStatus, model: ImageModel, outcome: ImageOutcome) -> None:
    status.progress = outcome.progress
    status.provider_task_id = outcome.task
    if outcome.wait is None:
        status.phase, status.provider_image_ref = READY, outcome.id
    else:
        status.phase, status.provider_image_ref = (UPLOADING if model.file else DOWNLOADING), ""


def phase_of_error(status: ImageSyncStatus, error: ProviderError) -> str:
    """An outage changes nothing about an image."""
    return status.phase if can_not_ask(error) or isinstance(error, Stale) else FAILED


def checksum_verdict(model: ImageModel, outcome: ImageOutcome) -> Verdict:
    if outcome.wait is not None:
        return "Unknown", "NotImported", "the image is not there yet"
    if outcome.verified:
        return "True", "Verified", outcome.verified
    if outcome.unverified:
        return "False", "NotVerified", outcome.unverified
    if model.factory is not None:
        return "False", "NoChecksum", "the image factory publishes no checksums of disk images"
    return "False", "NoChecksum", "no checksum was given: set spec.source.sha256 (Nutanix) or sha512 (Harvester)"
