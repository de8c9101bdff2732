"""Fields of the kinds of source.toolkit.fluxcd.io."""

from __future__ import annotations

from collections.abc import Mapping

FIELDS: Mapping[str, str] = {
    "HelmRepository.spec": "Address of the repository, and how to reach it.",
    "HelmChart.spec": "The chart, its version and its repository.",
    "OCIRepository.spec": "Address of the chart, and how to reach it.",
    "HelmRepositorySpec.url": "Address of the repository, for example https://charts.example.com or oci://registry.example.com/charts.",
    "OCIRepositorySpec.url": "Address of the chart, for example oci://registry.example.com/charts/web.",
    "type": "Type of the repository: default for HTTP, oci for registries. Default: as the address has it.",
    "secretRef": "Secret with username and password, or with .dockerconfigjson.",
    "certSecretRef": "Secret with the CA certificate of the server, key ca.crt. Default: the CA certificates of the system.",
    "passCredentials": "True sends the account to other hosts, too, if the index refers to them. Default: false.",
    "insecure": "True uses HTTP without TLS. Default: false.",
    "provider": "Way to log in. Only generic is supported. Default: generic.",
    "SecretName.name": "Name of the Secret.",
    "SourceReference.apiVersion": "API version of the repository.",
    "SourceReference.kind": "Kind of the repository. Only HelmRepository is supported.",
    "SourceReference.name": "Name of the repository, in the same namespace.",
    "chart": "Name of the chart in the repository, for example web.",
    "version": "Version of the chart, or a range such as 1.x. Default: the newest.",
    "sourceRef": "Repository of the chart.",
    "valuesFiles": "Files of the chart that replace its values.yaml. Not supported.",
    "ref": "Tag, version range or digest. Default: the newest version.",
    "tag": "Name of a tag, for example 1.0.0.",
    "semver": "Range of versions, for example 1.x. The newest one counts.",
    "semverFilter": "Regular expression that tags must match. Not supported.",
    "status": "State of the source, as Flux reports it where it runs. Homeport reports on templates instead.",
    "digest": "Digest of the manifest, for example sha256:...",
}
