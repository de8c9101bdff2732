"""How the containers of a control plane are started. Pure."""

from __future__ import annotations

import shlex
from typing import Any

from homeport.hosted.k0smotron.pod.config import KINE_PLACEHOLDER, KINE_VARIABLE, NATS_CONFIG
from homeport.hosted.k0smotron.pod.subject import Subject, config_map

Json = dict[str, Any]

SCRIPT_KEY = "k0smotron-entrypoint.sh"
SCRIPT_PATH = f"/{SCRIPT_KEY}"
CONFIG_PATH = "/etc/k0s/k0s.yaml"
_FILLED_PATH = "/run/k0smotron/k0s.yaml"
NATS_DIR = "/nats-data"

_KINE = f"""\
# The URL of the database is a secret: the ConfigMap does not contain it.
mkdir -p {_FILLED_PATH.rpartition("/")[0]}
url=$(printf '%s' "${KINE_VARIABLE}" | sed 's/[&|\\\\]/\\\\&/g')
umask 077
sed "s|{KINE_PLACEHOLDER}|$url|g" {CONFIG_PATH} > {_FILLED_PATH}
"""

_NATS = f"""\
# Each Pod runs a member of the NATS cluster; members know each other by the names of their Pods.
umask 077
mkdir -p {NATS_CONFIG.rpartition("/")[0]}
{{
  echo "server_name: $HOSTNAME"
  echo "listen: 127.0.0.1:4222"
  echo "jetstream {{ store_dir: {NATS_DIR} }}"
  if [ "$K0SMOTRON_NATS_REPLICAS" -gt 1 ]; then
    echo "cluster {{"
    echo "  name: $K0SMOTRON_NATS_NAME"
    echo "  listen: 0.0.0.0:6222"
    echo "  authorization {{ user: nats, password: \\"$K0SMOTRON_NATS_TOKEN\\" }}"
    echo "  routes: ["
    number=0
    while [ "$number" -lt "$K0SMOTRON_NATS_REPLICAS" ]; do
      peer="$K0SMOTRON_NATS_NAME-$number"
      if [ "$peer" != "$HOSTNAME" ]; then
        echo "    nats://nats:$K0SMOTRON_NATS_TOKEN@$peer.$K0SMOTRON_NATS_SERVICE.$POD_NAMESPACE.svc:6222"
      fi
      number=$((number + 1))
    done
    echo "  ]"
    echo "}}"
  fi
}} > {NATS_CONFIG}
"""


def render_script(subject: Subject) -> str:
    """Its last line starts k0s, with all flags written out."""
    steps = ["#!/bin/sh", "set -eu"]
    if _kine_is_secret(subject):
        steps.append(_KINE.rstrip())
    if subject.storage == "nats":
        steps.append(_NATS.rstrip())
    steps.append(f"exec k0s controller {shlex.join(controller_flags(subject))}")
    return "\n".join(steps) + "\n"


def controller_flags(subject: Subject) -> list[str]:
    flags = list(subject.spec.control_plane_flags)
    given = {each.partition("=")[0] for each in flags}
    if "--config" not in given:
        flags.append(f"--config={_FILLED_PATH if _kine_is_secret(subject) else CONFIG_PATH}")
    if "--enable-dynamic-config" not in given:
        flags.append("--enable-dynamic-config")
    if subject.spec.ingress is not None:
        flags.append("--disable-components=endpoint-reconciler")
    return flags


def _kine_is_secret(subject: Subject) -> bool:
    return subject.storage == "kine" and bool(subject.spec.storage.kine.data_source_secret_name)


def render_entrypoint(subject: Subject) -> Json:
    return config_map(subject, subject.names.entrypoint, "entrypoint", {SCRIPT_KEY: render_script(subject)})
