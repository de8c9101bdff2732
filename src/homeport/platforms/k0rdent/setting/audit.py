"""ClusterAuditPolicy as the policy file that kube-apiserver reads. Pure."""

from __future__ import annotations

from homeport.api.k0rdent.v1beta1 import ClusterAuditPolicy
from homeport.api.meta import wire
from homeport.infra.preflight.near import near
from homeport.machinery import yaml

LEVELS = ("None", "Metadata", "Request", "RequestResponse")
_STAGES = ("RequestReceived", "ResponseStarted", "ResponseComplete", "Panic")


def audit_error(obj: ClusterAuditPolicy) -> str:
    """What kube-apiserver would refuse; '' if it can be used."""
    policy, said = obj.spec.policy, []
    if not policy.rules:
        said.append("spec.policy.rules: at least one rule is required")
    stages = [("spec.policy.omitStages", each) for each in policy.omit_stages]
    for number, rule in enumerate(policy.rules):
        path = f"spec.policy.rules[{number}]"
        if rule.level not in LEVELS:
            said.append(f'{path}.level: "{rule.level}" is not a level{near(rule.level, LEVELS)}')
        if rule.non_resource_urls and (rule.resources or rule.namespaces):
            said.append(f"{path}: nonResourceURLs can't be combined with resources or namespaces")
        stages += [(f"{path}.omitStages", each) for each in rule.omit_stages]
    said += [f'{path}: "{each}" is not a stage{near(each, _STAGES)}' for path, each in stages if each not in _STAGES]
    return "; ".join(said)


def render_audit(obj: ClusterAuditPolicy) -> str:
    return yaml.dump({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", **wire(obj.spec.policy)})
