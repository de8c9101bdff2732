"""One result of the doctor: what is wrong, where, and the command that cures it."""

from __future__ import annotations

import shlex

import msgspec

# From cause to consequence: what stands first explains what stands behind it.
LAYERS = (
    "plane",
    "credential",
    "connection",
    "definition",
    "network",
    "capacity",
    "machine",
    "guest",
    "endpoint",
    "node",
    "addon",
    "certificate",
    "other",
)


class Diagnosis(msgspec.Struct, frozen=True, rename="camel"):
    cause: str  # a word for scripts, for example CredentialsInvalid
    layer: str  # one of LAYERS
    kind: str
    object: str  # namespace/name
    message: str
    cure: str = ""  # a command; '': see the message
    consequences: list[str] = []  # `Kind name` of objects that suffer from it
    serious: bool = True  # False: nothing is broken yet

    @property
    def place(self) -> str:
        """`Kind name`, with the namespace where it is not `default`."""
        return f"{self.kind} {self.object.removeprefix('default/')}"


class Commands(msgspec.Struct, frozen=True):
    """Writes the commands that a user runs next, with the options that are in use."""

    kubeconfig: str = ""  # '': kubectl finds the plane by itself
    homeport: str = ""  # options of homeport, for example ` --data DIR`

    def kubectl(self, *arguments: str) -> str:
        given = f" --kubeconfig {shlex.quote(self.kubeconfig)}" if self.kubeconfig else ""
        return f"kubectl{given} {' '.join(shlex.quote(each) for each in arguments)}"

    def run(self, *arguments: str) -> str:
        return f"homeport {' '.join(shlex.quote(each) for each in arguments)}{self.homeport}"

    def on_cluster(self, cluster: str, namespace: str, *arguments: str) -> str:
        """kubectl on a workload cluster."""
        file = f"{cluster}.kubeconfig"
        words = " ".join(shlex.quote(each) for each in arguments)
        return f"{self.run('kubeconfig', cluster, '-n', namespace, '-o', file)} && kubectl --kubeconfig {file} {words}"
