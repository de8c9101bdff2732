"""How a definition's versions are converted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from homeport.machinery.schema import violation as v
from homeport.machinery.schema.name import dns_label_1035, dns_subdomain
from homeport.machinery.schema.violation import Violation

Raw = Mapping[str, Any]

_REVIEWS: Final = ("v1", "v1beta1")
_PATH: Final = "spec.conversion"
_CONFIG: Final = f"{_PATH}.webhookClientConfig"
_FORM: Final = "; desired format: https://host[/path]"


def conversion_violations(conversion: Raw | None, preserves_unknown: bool) -> Iterator[Violation]:
    if conversion is None:
        return
    strategy = conversion.get("strategy") or ""
    if strategy not in ("", "None") and preserves_unknown:
        detail = "must be None if spec.preserveUnknownFields is true"
        yield v.invalid(f"{_PATH}.strategy", strategy, detail)
    if not strategy:
        yield v.required(f"{_PATH}.strategy")
    elif strategy not in ("None", "Webhook"):
        yield v.not_supported(f"{_PATH}.strategy", strategy, ("None", "Webhook"))
    webhook = conversion.get("webhook") or {}
    config, reviews = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    if strategy == "Webhook":
        yield from _config(config)
        yield from _review_versions(reviews)
        return
    detail = "should not be set when strategy is not set to Webhook"
    if config is not None:
        yield v.forbidden(_CONFIG, detail)
    if reviews:
        yield v.forbidden(f"{_PATH}.conversionReviewVersions", detail)


def _config(config: Raw | None) -> Iterator[Violation]:
    if config is None:
        yield v.required(_CONFIG, "required when strategy is set to Webhook")
        return
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        yield v.required(_CONFIG, "exactly one of url or service is required")
    elif url is not None:
        yield from _url(url)
    elif service is not None:
        yield from _service(service)


def _url(url: str) -> Iterator[Violation]:
    field = f"{_CONFIG}.url"
    try:
        parts = urlsplit(url)
    except ValueError as error:
        yield v.required(field, f"url must be a valid URL: {error}{_FORM}")
        return
    if parts.scheme != "https":
        yield v.invalid(field, parts.scheme, f"'https' is the only allowed URL scheme{_FORM}")
    if not parts.netloc:
        yield v.invalid(field, "", f"host must be specified{_FORM}")
    if "@" in parts.netloc:
        user = parts.netloc.rpartition("@")[0]
        yield v.invalid(field, user, "user information is not permitted in the URL")
    if parts.fragment:
        yield v.invalid(field, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        yield v.invalid(field, parts.query, "query parameters are not permitted in the URL")


def _service(service: Raw) -> Iterator[Violation]:
    field, port, path = f"{_CONFIG}.service", service.get("port", 443), service.get("path")
    for key in ("name", "namespace"):
        if not service.get(key):
            yield v.required(f"{field}.{key}")
    if not 1 <= port <= 65535:
        detail = "port is not valid: must be between 1 and 65535, inclusive"
        yield v.invalid(f"{field}.port", port, detail)
    if not path or path == "/":
        return
    if not path.startswith("/"):
        yield v.invalid(f"{field}.path", path, "must start with a '/'")
    for index, step in enumerate(path[1:].removesuffix("/").split("/")):
        if not step:
            yield v.invalid(f"{field}.path", path, f"segment[{index}] may not be empty")
        else:
            yield from (v.invalid(f"{field}.path", path, f"segment[{index}]: {w}") for w in dns_subdomain(step))


def _review_versions(versions: list[str]) -> Iterator[Violation]:
    field = f"{_PATH}.conversionReviewVersions"
    if not versions:
        yield v.required(field)
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield v.invalid(f"{field}[{index}]", version, "duplicate version")
            continue
        yield from (v.invalid(f"{field}[{index}]", version, wrong) for wrong in dns_label_1035(version))
    if not set(versions) & set(_REVIEWS):
        yield v.invalid(field, versions, f"must include at least one of {', '.join(_REVIEWS)}")
