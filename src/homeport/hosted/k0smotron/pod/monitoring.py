"""Prometheus beside the control plane, and a proxy that offers its metrics as those of the Pod. Pure."""

from __future__ import annotations

from typing import Any

from homeport.hosted.k0smotron.pod.subject import DATA_DIR, PKI_DIR, Subject, config_map
from homeport.machinery import yaml

Json = dict[str, Any]

PROMETHEUS_KEY, PROXY_KEY = "prometheus.yml", "nginx.conf"
PROXY_PORT = 8090

_PROXY = f"""\
worker_processes 1;
error_log /dev/stderr warn;
pid /var/run/nginx.pid;
events {{ worker_connections 512; }}
http {{
  access_log off;
  server {{
    listen {PROXY_PORT};
    location = /metrics {{
      set $all "{{job!=''}}";
      proxy_pass http://127.0.0.1:9090/federate?match[]=$all;
    }}
  }}
}}
"""


def render_monitoring(subject: Subject) -> Json:
    data = {PROMETHEUS_KEY: yaml.dump(_prometheus(subject)), PROXY_KEY: _PROXY}
    return config_map(subject, subject.names.monitoring, "monitoring", data)


def _prometheus(subject: Subject) -> Json:
    components = {
        "kube-apiserver": subject.spec.service.api_port,
        "kube-scheduler": 10259,
        "kube-controller-manager": 10257,
    }
    jobs = [
        _job("k0smotron_cluster_metrics", "admin", {f"localhost:{port}": c for c, port in components.items()}, subject)
    ]
    if subject.storage == "etcd":
        target = {f"{subject.names.etcd}:2379": "etcd"}
        jobs.append(_job("k0smotron_etcd_metrics", "apiserver-etcd-client", target, subject))
    return {"global": {"scrape_interval": "10s", "evaluation_interval": "10s"}, "scrape_configs": jobs}


def _job(name: str, certificate: str, targets: dict[str, str], subject: Subject) -> Json:
    return {
        "job_name": name,
        "scheme": "https",
        "tls_config": {
            "insecure_skip_verify": True,  # the names in these certificates are not those of the Pod's own loopback
            "cert_file": f"{PKI_DIR}/{certificate}.crt",
            "key_file": f"{PKI_DIR}/{certificate}.key",
        },
        "static_configs": [
            {"targets": [target], "labels": {"component": component, "k0smotron_cluster": subject.name}}
            for target, component in targets.items()
        ],
    }


def add_monitoring(subject: Subject, statefulset: Json, data_volume: str) -> None:
    template, monitoring = statefulset["spec"]["template"], subject.spec.monitoring
    names = subject.names
    template["spec"]["containers"] += [
        {
            "name": "monitoring-agent",
            "image": monitoring.prometheus_image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["prometheus", "--config.file=/prometheus/prometheus.yml"],
            "args": ["--storage.tsdb.retention.size=200MB"],
            "ports": [{"name": "prometheus", "containerPort": 9090, "protocol": "TCP"}],
            "volumeMounts": [
                {"name": data_volume, "mountPath": DATA_DIR, "readOnly": True},
                {"name": names.monitoring, "mountPath": "/prometheus/prometheus.yml", "subPath": PROMETHEUS_KEY},
            ],
        },
        {
            "name": "monitoring-proxy",
            "image": monitoring.proxy_image,
            "imagePullPolicy": "IfNotPresent",
            "ports": [{"name": "metrics", "containerPort": PROXY_PORT, "protocol": "TCP"}],
            "volumeMounts": [
                {"name": names.monitoring, "mountPath": "/etc/nginx/nginx.conf", "subPath": PROXY_KEY},
            ],
        },
    ]
    template["metadata"]["annotations"] |= {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": str(PROXY_PORT),
        "prometheus.io/path": "/metrics",
    }
    template["spec"]["volumes"].append({"name": names.monitoring, "configMap": {"name": names.monitoring}})
