"""APIService: registered and shown, never proxied to. Only the API that the server itself serves is available."""

from __future__ import annotations

from homeport.apiserver.kinds.check import dns_subdomain, forbidden, invalid, named, required
from homeport.apiserver.kinds.strategy import WithStatus
from homeport.apiserver.name import dns_label_1035
from homeport.apiserver.resource import Json
from homeport.client.errors import Cause


class ApiService(WithStatus):
    def default(self, obj: Json) -> None:
        service = (obj.get("spec") or {}).get("service")
        if service is not None:
            service.setdefault("port", 443)

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        spec, name = obj.get("spec") or {}, obj["metadata"].get("name", "")
        group, version = spec.get("group", ""), spec.get("version", "")
        causes: list[Cause] = []
        if name != f"{version}.{group}":
            causes.append(invalid("metadata.name", name, f'must be `spec.version+"."+spec.group`: "{version}.{group}"'))
        if group:
            causes += named("spec.group", group, dns_subdomain)
        elif version != "v1":
            causes.append(required("spec.group", "only v1 may have an empty group and it better be legacy kube"))
        causes += named("spec.version", version, dns_label_1035)
        for field, limit in (("groupPriorityMinimum", 20000), ("versionPriority", 1000)):
            value = spec.get(field, 0)
            if not 0 < value <= limit:
                causes.append(invalid(f"spec.{field}", value, f"must be positive and less than {limit}"))
        service = spec.get("service")
        if service is None:
            for field in ("insecureSkipTLSVerify", "caBundle"):
                if spec.get(field):
                    causes.append(invalid(f"spec.{field}", spec[field], "local APIServices may not have it"))
            return causes
        causes += (required(f"spec.service.{part}") for part in ("namespace", "name") if not service.get(part))
        if spec.get("insecureSkipTLSVerify") and spec.get("caBundle"):
            causes.append(forbidden("spec.insecureSkipTLSVerify", "may not be true if caBundle is present"))
        return causes
