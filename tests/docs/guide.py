"""The five guides as the tests hold them: their blocks, and the commands and fields in these."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from seeds import block, k0rdent_block, object_block

REFERENCE = Path(__file__).resolve().parents[2] / "docs/reference"
# Values of a ClusterDeployment and parts of objects, and what they are a part of.
PARTS = {
    "N06": ("ClusterBootstrap",),
    "N07": ("ButlerConfig", "TenantCluster"),
    "N08": ("TenantCluster",),
    "N15": ("ProviderConfig",),
    "H09": ("TenantCluster",),
    "H10": ("TenantCluster",),
}
VALUES = ("K07", "K09", "K17", "K18", "K19", "K20", "K28")
PROGRAMS = ("kubectl", "helm", "clusterctl", "curl", "ssh", "ssh-keygen", "ping", "xz", "cat")
_ROW = re.compile(r"^\| ([NHPKO]\d\d) \| [^|]+ \| ([^|]+) \|", re.MULTILINE)


@dataclass(frozen=True)
class Guide:
    title: str
    letter: str
    page: str
    holder: Any

    @cached_property
    def blocks(self) -> dict[str, str]:
        found = {name.partition("_")[0]: text for name, text in vars(self.holder).items() if isinstance(text, str)}
        return {name: text for name, text in found.items() if re.fullmatch(rf"{self.letter}\d\d", name)}

    @cached_property
    def states(self) -> dict[str, str]:
        """What the page says of each block: its first word."""
        rows = _ROW.findall((REFERENCE / self.page).read_text())
        return {name: re.split(r"[;:]", state)[0].strip() for name, state in rows if name[0] == self.letter}

    def commands(self) -> Iterator[tuple[str, str]]:
        for name, text in self.blocks.items():
            plain = re.sub(r"<<'?EOF'?\n.*?^EOF$", "<<EOF", text.replace("\\\n", " "), flags=re.S | re.M)
            for line in plain.splitlines():
                if line.split(" ")[0] in PROGRAMS:
                    yield name, " ".join(line.split())

    def fields(self) -> list[tuple[str, str]]:
        """Kind and path, once each, in the order of the guide."""
        found = [each for name, text in self.blocks.items() for each in _fields(name, text)]
        return list(dict.fromkeys(found))


GUIDES = (
    Guide("Butler on Nutanix", "N", "butler-coverage.md", block),
    Guide("Butler on Harvester", "H", "butler-coverage.md", block),
    Guide("Butler's providers", "P", "butler-coverage.md", block),
    Guide("k0rdent on Nutanix", "K", "k0rdent-coverage.md", k0rdent_block),
    Guide("Objects of Cluster API on Nutanix", "O", "object-model-coverage.md", object_block),
)


def _fields(name: str, text: str) -> Iterator[tuple[str, str]]:
    if name in VALUES:
        yield from (("ClusterDeployment", path) for path in _leaves(yaml.safe_load(text), "spec.config"))
        return
    for document in _documents(name, text):
        kinds = PARTS.get(name) or (document.get("kind", ""),)
        for part in ("spec", "data", "stringData"):
            if isinstance(document.get(part), dict):
                yield from ((kind, path) for kind in kinds for path in _leaves(document[part], part))


def _documents(name: str, text: str) -> list[dict[str, Any]]:
    heredocs = re.findall(r"<<'?EOF'?\n(.*?)^EOF$", text, re.S | re.M)
    if not heredocs and any(line.split(" ")[0] in PROGRAMS for line in text.splitlines()):
        return []
    found = [each for body in heredocs or [text] for each in yaml.safe_load_all(body)]
    return [each for each in found if isinstance(each, dict) and (name in PARTS or "kind" in each)]


def _leaves(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for name, each in value.items():
            yield from _leaves(each, f"{path}.{name}")
    elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
        for each in value:
            yield from _leaves(each, f"{path}[]")
    else:
        yield path
