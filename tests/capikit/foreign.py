"""Upstream's managers as processes on a real kube-apiserver: core, kubeadm bootstrap and control plane, Nutanix.

As they are released, but for what a Pod would give them: certificates, ports, and webhooks that are asked by address. They
elect no leader, because each is alone.
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from capikit import upstream
from homeport.machinery import yaml
from realkube import RealKube, free_port

_READY_SECONDS = 120.0


class Managers:
    """Installs their definitions, starts them, waits until they are ready, has their webhooks asked."""

    def __init__(self, kube: RealKube, *, proxy: str, authority: Path) -> None:
        """`proxy` leads to workload clusters; `authority` is the CA of whatever they call by TLS."""
        self.kube = kube
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._ports = {name: (free_port(), free_port()) for name in upstream.MANAGERS}
        self._proxy = proxy
        self._authority = authority
        self._bundle = base64.b64encode(kube.ca.read_bytes()).decode()

    def __enter__(self) -> Managers:
        try:
            self._certificates = self._make_certificates()
            self._apply([_converting(crd, self._ports, self._bundle) for crd in _definitions()])
            for name in upstream.MANAGERS:
                self._start(name)
            for name in upstream.MANAGERS:
                self._await(name)
            self._apply([each for name in upstream.MANAGERS for each in self._webhooks(name)])
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()
        self.processes.clear()

    def log(self, name: str) -> str:
        return (self.kube.dir / f"manager-{name}.log").read_text(errors="replace")

    def logs(self, lines: int = 15) -> str:
        """The end of each log, for failures."""
        tails = {name: "\n".join(self.log(name).splitlines()[-lines:]) for name in self.processes}
        return "\n".join(f"--- {name}\n{tail}" for name, tail in tails.items())

    def _make_certificates(self) -> Path:
        folder = self.kube.dir / "webhook-certs"
        folder.mkdir()
        made = self.kube.authority.issue("webhooks", serving=True)
        shutil.copyfile(made.cert, folder / "tls.crt")
        shutil.copyfile(made.key, folder / "tls.key")
        return folder

    def _apply(self, objects: list[dict[str, Any]]) -> None:
        text = "---\n".join(yaml.dump(each) for each in objects)
        done = self.kube.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)
        if done.returncode != 0:
            raise RuntimeError(f"upstream's objects were refused: {done.stderr}")

    def _start(self, name: str) -> None:
        webhook, health = self._ports[name]
        arguments = [
            f"--kubeconfig={self.kube.kubeconfig}",
            f"--webhook-port={webhook}",
            f"--webhook-cert-dir={self._certificates}",
            f"--health-addr=127.0.0.1:{health}",
            "--diagnostics-address=127.0.0.1:0",
            "--insecure-diagnostics",
        ]
        # Nutanix' own clients know no proxy; addresses on loopback are never asked for by proxy.
        environment = {
            **os.environ,
            "HTTPS_PROXY": self._proxy,
            "NO_PROXY": "127.0.0.1,localhost",
            "SSL_CERT_FILE": str(self._authority),
            "POD_NAMESPACE": "default",
        }
        with open(self.kube.dir / f"manager-{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen(
                [str(upstream.folder() / name), *arguments],
                cwd=self.kube.dir,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _await(self, name: str) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        while time.monotonic() < deadline:
            if (code := self.processes[name].poll()) is not None:
                raise RuntimeError(f"upstream's {name} ended with {code}:\n{self.log(name)[-3000:]}")
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self._ports[name][1]}/readyz", timeout=5) as answer:
                    if answer.status == 200:
                        return
            except (OSError, urllib.error.URLError):
                pass  # not listening yet, or 500 while its webhooks are not
            time.sleep(0.05)
        raise RuntimeError(f"upstream's {name} is not ready after {_READY_SECONDS:g} s:\n{self.log(name)[-3000:]}")

    def _webhooks(self, name: str) -> list[dict[str, Any]]:
        found = upstream.webhooks(name)
        for config in found:
            config["metadata"] = {"name": f"{name}-{config['metadata']['name']}"}
            for webhook in config["webhooks"]:
                path = webhook["clientConfig"]["service"]["path"]
                webhook["clientConfig"] = self._client(name, path)
        return found

    def _client(self, name: str, path: str) -> dict[str, str]:
        return {"url": f"https://127.0.0.1:{self._ports[name][0]}{path}", "caBundle": self._bundle}


def _definitions() -> list[tuple[str, dict[str, Any]]]:
    return [(name, crd) for name in upstream.MANAGERS for crd in upstream.definitions(name)]


def _converting(named: tuple[str, dict[str, Any]], ports: Mapping[str, tuple[int, int]], bundle: str) -> dict[str, Any]:
    name, crd = named
    if len(crd["spec"]["versions"]) > 1:
        client = {"url": f"https://127.0.0.1:{ports[name][0]}/convert", "caBundle": bundle}
        webhook = {"clientConfig": client, "conversionReviewVersions": ["v1", "v1beta1"]}
        crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    return crd
