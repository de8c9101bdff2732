"""ValidatingWebhookConfiguration and MutatingWebhookConfiguration.

The expressions of matchConditions are not compiled here, but before the webhook is called.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from homeport.apiserver.kinds.check import (
    dns_label,
    dns_subdomain,
    duplicate,
    invalid,
    label_key,
    label_selector,
    named,
    one_of,
    required,
    too_many,
    unsupported,
)
from homeport.apiserver.kinds.strategy import Plain
from homeport.apiserver.resource import Json
from homeport.client.errors import Cause

_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_VERSIONS = ("v1", "v1beta1")
_SCOPES = ("*", "Cluster", "Namespaced")
_FORM = "desired format: https://host[/path]"
_MOST_CONDITIONS = 64


class WebhookConfiguration(Plain):
    def __init__(self, *, mutating: bool) -> None:
        self._mutating = mutating

    def default(self, obj: Json) -> None:
        for hook in obj.get("webhooks") or ():
            for field, value in (
                ("failurePolicy", "Fail"),
                ("matchPolicy", "Equivalent"),
                ("namespaceSelector", {}),
                ("objectSelector", {}),
                ("timeoutSeconds", 10),
            ):
                if hook.get(field) is None:
                    hook[field] = value
            if self._mutating:
                hook.setdefault("reinvocationPolicy", "Never")
            service = (hook.get("clientConfig") or {}).get("service")
            if service is not None:
                service.setdefault("port", 443)
            for rule in hook.get("rules") or ():
                rule.setdefault("scope", "*")

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        causes: list[Cause] = []
        names: set[str] = set()
        for i, hook in enumerate(obj.get("webhooks") or ()):
            name = hook.get("name", "")
            causes += self._hook(f"webhooks[{i}]", hook)
            causes += _versions(f"webhooks[{i}].admissionReviewVersions", hook.get("admissionReviewVersions") or [])
            if name and name in names:
                causes.append(duplicate(f"webhooks[{i}].name", name))
            names.add(name)
        return causes

    def _hook(self, field: str, hook: Json) -> Iterator[Cause]:
        yield from _qualified(f"{field}.name", hook.get("name", ""))
        for i, rule in enumerate(hook.get("rules") or ()):
            yield from _rule(f"{field}.rules[{i}]", rule)
        yield from one_of(f"{field}.failurePolicy", hook["failurePolicy"], ("Fail", "Ignore"))
        yield from one_of(f"{field}.matchPolicy", hook["matchPolicy"], ("Equivalent", "Exact"))
        effects = hook.get("sideEffects")
        if not effects:
            yield required(f"{field}.sideEffects", "must specify one of None, NoneOnDryRun")
        elif effects not in ("None", "NoneOnDryRun"):
            yield unsupported(f"{field}.sideEffects", effects, ("None", "NoneOnDryRun"))
        if self._mutating:
            yield from one_of(f"{field}.reinvocationPolicy", hook["reinvocationPolicy"], ("IfNeeded", "Never"))
        seconds = hook["timeoutSeconds"]
        if not 1 <= seconds <= 30:
            yield invalid(f"{field}.timeoutSeconds", seconds, "the timeout value must be between 1 and 30 seconds")
        for selector in ("namespaceSelector", "objectSelector"):
            yield from label_selector(f"{field}.{selector}", hook[selector])
        yield from client_config(f"{field}.clientConfig", hook.get("clientConfig") or {})
        yield from _conditions(f"{field}.matchConditions", hook.get("matchConditions") or [])


def _qualified(field: str, name: str) -> Iterator[Cause]:
    if not name:
        yield required(field)
        return
    wrong = dns_subdomain(name)
    if wrong:
        yield invalid(field, name, wrong)
    elif len(name.split(".")) < 3:
        yield invalid(field, name, "should be a domain with at least three segments separated by dots")


def _versions(field: str, versions: list[str]) -> Iterator[Cause]:
    known = ", ".join(_VERSIONS)
    if not versions:
        yield required(field, f"must specify one of {known}")
        return
    seen: set[str] = set()
    for i, version in enumerate(versions):
        if version in seen:
            yield invalid(f"{field}[{i}]", version, "duplicate version")
        seen.add(version)
        yield from named(f"{field}[{i}]", version, dns_label)
    if not seen & set(_VERSIONS):
        yield invalid(field, versions, f"must include at least one of {known}")


def _rule(field: str, rule: Json) -> Iterator[Cause]:
    operations = rule.get("operations") or []
    if not operations:
        yield required(f"{field}.operations")
    if "*" in operations and len(operations) > 1:
        yield invalid(f"{field}.operations", operations, "if '*' is present, must not specify other operations")
    for i, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            yield unsupported(f"{field}.operations[{i}]", operation, _OPERATIONS)
    for name, what in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = rule.get(name) or []
        if not values:
            yield required(f"{field}.{name}")
        if "*" in values and len(values) > 1:
            yield invalid(f"{field}.{name}", values, f"if '*' is present, must not specify other {what}")
        if name == "apiVersions":
            yield from (required(f"{field}.{name}[{i}]") for i, value in enumerate(values) if not value)
    yield from _resources(f"{field}.resources", rule.get("resources") or [])
    if rule["scope"] not in _SCOPES:
        yield unsupported(f"{field}.scope", rule["scope"], _SCOPES)


def _resources(field: str, resources: list[str]) -> Iterator[Cause]:
    if not resources:
        yield required(field)
    if len(resources) < 2:
        return
    if "*/*" in resources:
        yield invalid(field, resources, "if '*/*' is present, must not specify other resources")
        return
    plain = [resource for resource in resources if "/" not in resource]
    if "*" in plain and len(plain) > 1:
        yield invalid(field, resources, "if '*' is present, must not specify other resources without subresources")
    for resource in resources:
        name, slash, sub = resource.partition("/")
        if slash and sub == "*" and any(r != resource and r.startswith(f"{name}/") for r in resources):
            yield invalid(field, resources, f"if '{resource}' is present, must not specify {name}/x")
        elif slash and name == "*" and any(r != resource and r.endswith(f"/{sub}") for r in resources):
            yield invalid(field, resources, f"if '{resource}' is present, must not specify x/{sub}")


def client_config(field: str, config: Json) -> Iterator[Cause]:
    """Where a webhook is called: by URL or by Service."""
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        yield required(field, "exactly one of url or service is required")
    elif url is not None:
        yield from _url(f"{field}.url", url)
    elif service is not None:
        yield from _service(f"{field}.service", service)


def _url(field: str, text: str) -> Iterator[Cause]:
    try:
        url = urlsplit(text)
    except ValueError as error:
        yield required(field, f"url must be a valid URL: {error}; {_FORM}")
        return
    if url.scheme != "https":
        yield invalid(field, url.scheme, f"'https' is the only allowed URL scheme; {_FORM}")
    if not url.hostname:
        yield invalid(field, url.hostname or "", f"host must be specified; {_FORM}")
    user, at, _ = url.netloc.rpartition("@")
    if at:
        yield invalid(field, user, "user information is not permitted in the URL")
    if url.fragment:
        yield invalid(field, url.fragment, "fragments are not permitted in the URL")
    if url.query:
        yield invalid(field, url.query, "query parameters are not permitted in the URL")


def _service(field: str, service: Json) -> Iterator[Cause]:
    for part in ("name", "namespace"):
        if not service.get(part):
            yield required(f"{field}.{part}")
    if not 1 <= service["port"] <= 65535:
        detail = "port is not valid: must be between 1 and 65535, inclusive"
        yield invalid(f"{field}.port", service["port"], detail)
    path = service.get("path")
    if path is None or path == "/":
        return
    if not path.startswith("/"):
        yield invalid(f"{field}.path", path, "must start with a '/'")
    steps = path.removesuffix("/").split("/")[1:] if path.startswith("/") else ["", *path.split("/")[1:]]
    for i, step in enumerate(steps):
        if not step:
            yield invalid(f"{field}.path", path, f"segment[{i}] may not be empty")
        elif wrong := dns_subdomain(step):
            yield invalid(f"{field}.path", path, f"segment[{i}]: {wrong}")


def _conditions(field: str, conditions: list[Json]) -> Iterator[Cause]:
    if len(conditions) > _MOST_CONDITIONS:
        yield too_many(field, len(conditions), _MOST_CONDITIONS)
    names: set[str] = set()
    for i, condition in enumerate(conditions):
        subfield, name = f"{field}[{i}]", condition.get("name", "")
        if not condition.get("expression", "").strip():
            yield required(f"{subfield}.expression")
        if not name:
            yield required(f"{subfield}.name")
        else:
            yield from named(f"{subfield}.name", name, label_key)
            if name in names:
                yield duplicate(f"{subfield}.name", name)
            names.add(name)
