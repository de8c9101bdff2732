from __future__ import annotations

import base64
import datetime
import os
from pathlib import Path
from typing import Any

import orjson
import pytest

from homeport.client.config import Config, ConfigError
from homeport.client.credential import Certificate, Static, TokenFile
from homeport.client.errors import Unauthorized
from homeport.client.kubeconfig import in_cluster, load, parse, read
from homeport.client.plugin import Command, ExecPlugin

V1 = "client.authentication.k8s.io/v1"


def config(cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, **context: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "https://kube:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", **context}}],
        "current-context": "x",
    }


def write(path: Path, content: dict[str, Any]) -> Path:
    path.write_bytes(orjson.dumps(content))  # JSON is YAML
    return path


def of(tmp_path: Path, *args: Any, **context: Any) -> Config:
    return load(write(tmp_path / "config", config(*args, **context)))


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


async def header(made: Config) -> str:
    return await made.credential.header()


async def test_a_context_names_cluster_user_and_namespace(tmp_path: Path) -> None:
    made = of(tmp_path, {"tls-server-name": "other", "proxy-url": "http://proxy:1"}, {"token": "t"}, namespace="n")
    assert (made.server, made.server_name, made.proxy, made.namespace) == (
        "https://kube:6443", "other", "http://proxy:1", "n",
    )  # fmt: skip
    assert await header(made) == "Bearer t"
    assert of(tmp_path).namespace == "default"


def test_certificates_come_as_data_or_as_files_beside_the_config(tmp_path: Path) -> None:
    for name in ("ca", "crt", "key"):
        (tmp_path / name).write_text(f"file-{name}")
    by_file = of(tmp_path, {"certificate-authority": "ca"}, {"client-certificate": "crt", "client-key": "key"})
    assert by_file.ca == b"file-ca"
    assert by_file.credential.certificate() == Certificate(b"file-crt", b"file-key")
    both = of(
        tmp_path,
        {"certificate-authority-data": b64("data-ca"), "certificate-authority": "none"},
        {"client-certificate-data": b64("data-crt"), "client-key-data": b64("data-key")},
    )
    assert both.ca == b"data-ca"
    assert both.credential.certificate() == Certificate(b"data-crt", b"data-key")


async def test_a_token_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one\n")
    now = [0.0]
    source = TokenFile(token, monotonic=lambda: now[0])
    assert await source.header() == "Bearer one"
    token.write_text("second")
    assert await source.header() == "Bearer one"
    now[0] = 11.0
    assert await source.header() == "Bearer second"
    token.unlink()
    now[0] = 22.0
    assert await source.header() == "Bearer second"
    with pytest.raises(Unauthorized, match=r"token file .* can't be read: No such file"):
        await TokenFile(token).header()
    token.write_text("\n")
    with pytest.raises(Unauthorized, match="is empty"):
        await TokenFile(token).header()
    by_config = of(tmp_path, {}, {"tokenFile": "token", "token": "ignored"})
    assert isinstance(by_config.credential, TokenFile)


async def test_a_password_becomes_basic_authentication(tmp_path: Path) -> None:
    assert await header(of(tmp_path, {}, {"username": "a", "password": "b"})) == f"Basic {b64('a:b')}"


def test_impersonation_is_read(tmp_path: Path) -> None:
    user = {"as": "jane", "as-uid": "1", "as-groups": ["a"], "as-user-extra": {"scopes": ["x", "y"]}}
    assert of(tmp_path, {}, user).impersonate.headers() == [
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "1"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Extra-scopes", "x"),
        ("Impersonate-Extra-scopes", "y"),
    ]


async def test_files_merge_and_the_first_wins(tmp_path: Path) -> None:
    first = write(
        tmp_path / "a",
        {
            "contexts": [{"name": "y", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {"token": "first"}}],
        },
    )
    second = write(tmp_path / "b", config({}, {"token": "second"}))
    missing = tmp_path / "missing"
    env = {"KUBECONFIG": os.pathsep.join(map(str, (first, missing, second)))}
    made = load(env=env)
    assert await header(made) == "Bearer first"
    assert (await header(load(env=env, context="y"))) == "Bearer first"
    merged = read(env=env)
    assert merged is not None
    assert merged.current == "x"
    assert merged.names("contexts") == ["x", "y"]


def test_the_home_directory_is_the_default(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    write(tmp_path / ".kube" / "config", config())
    assert load(env={"HOME": str(tmp_path)}).server == "https://kube:6443"
    with pytest.raises(ConfigError, match="does not exist"):
        load(env={"HOME": str(tmp_path / "nowhere")})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (config({"server": ""}), "clusters[c].cluster.server: is missing"),
        (config({"server": "kube:6443"}), "clusters[c].cluster.server: must start with https://"),
        (config({"certificate-authority": "none.crt"}), "clusters[c].cluster.certificate-authority: can't read"),
        (config({"certificate-authority-data": "%%"}), "clusters[c].cluster.certificate-authority-data: is not base64"),
        (config({"insecure-skip-tls-verify": "yes"}), "insecure-skip-tls-verify: must be true or false"),
        (
            config({"insecure-skip-tls-verify": True, "certificate-authority-data": b64("x")}),
            "insecure-skip-tls-verify: excludes certificate-authority",
        ),
        (config({"proxy-url": "socks5://x"}), "clusters[c].cluster.proxy-url: must start with"),
        (config({}, {"client-certificate-data": b64("x")}), "users[u].user.client-key: is missing"),
        (config({}, {"token": 5}), "users[u].user.token: must be a string, not int"),
        (config({}, {"auth-provider": {"name": "gcp"}}), "users[u].user.auth-provider: is not supported"),
        (config({}, {"exec": {"apiVersion": "v0", "command": "x"}}), "users[u].user.exec.apiVersion: is 'v0', supported:"),
        (config({}, {"exec": {"apiVersion": V1}}), "users[u].user.exec.command: is missing"),
        (
            config({}, {"exec": {"apiVersion": V1, "command": "x", "interactiveMode": "Always"}}),
            "users[u].user.exec.interactiveMode: is Always",
        ),
        (
            config({}, {"exec": {"apiVersion": V1, "command": "x", "env": [{"value": "v"}]}}),
            "users[u].user.exec.env[0].name: is missing",
        ),
        (config(cluster=None) | {"current-context": ""}, "current-context is not set (contexts: x)"),
        (config(cluster=None) | {"current-context": "z"}, "no context named 'z' (contexts: x)"),
        (config(cluster=None) | {"users": []}, "no user named 'u' (users: none)"),
        (config(cluster=None) | {"clusters": {}}, "clusters: must be a list"),
        (config(cluster=None) | {"clusters": [{}]}, "clusters[0].name: is missing"),
        (config(cluster=None) | {"kind": "Pod"}, "kind: is 'Pod', a kubeconfig has Config"),
    ],
)  # fmt: skip
def test_errors_name_the_file_and_the_field(tmp_path: Path, content: dict[str, Any], message: str) -> None:
    path = write(tmp_path / "config", content)
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


def test_text_that_is_not_a_config_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        load(tmp_path / "missing")
    with pytest.raises(ConfigError, match="can't be read"):
        load(tmp_path)
    with pytest.raises(ConfigError, match=r"^f:3: "):
        parse("users:\n- token: [SECRET\n  b: }", Path("f"))
    with pytest.raises(ConfigError, match="must be a mapping"):
        parse("[]", Path("f"))


def test_secrets_do_not_show(tmp_path: Path) -> None:
    user = {"token": "SECRET", "client-certificate-data": b64("SECRET"), "client-key-data": b64("SECRET")}
    assert "SECRET" not in repr(of(tmp_path, {}, user))
    assert b64("SECRET") not in repr(of(tmp_path, {}, user))
    made = of(tmp_path, {}, {"exec": {"apiVersion": V1, "command": "x", "env": [{"name": "A", "value": "SECRET"}]}})
    assert "SECRET" not in repr(made)
    assert isinstance(made.credential, ExecPlugin)
    assert "SECRET" not in repr(made.credential.command)
    broken = 'users:\n- user: {token: "SECRET\n'
    with pytest.raises(ConfigError) as caught:
        parse(broken, Path("f"))
    assert "SECRET" not in str(caught.value)


# Exec plugins


def plugin(tmp_path: Path, script: str) -> Path:
    path = tmp_path / "plugin"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    return path


def credential(**status: Any) -> str:
    return orjson.dumps({"kind": "ExecCredential", "apiVersion": V1, "status": status}).decode()


def command(path: Path, **more: Any) -> Command:
    return Command("f: users[u].user.exec", V1, str(path), **more)


async def test_a_plugin_gets_the_cluster_and_returns_a_token(tmp_path: Path) -> None:
    script = f'echo "$KUBERNETES_EXEC_INFO" > {tmp_path}/info; echo "$1 $EXTRA" > {tmp_path}/args; echo \'{credential(token="t")}\''
    plugin(tmp_path, script)
    spec = {
        "apiVersion": V1,
        "command": "./plugin",
        "args": ["first"],
        "env": [{"name": "EXTRA", "value": "e"}],
        "provideClusterInfo": True,
        "interactiveMode": "Never",
    }
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}}
    made = of(tmp_path, {"certificate-authority-data": b64("ca"), "extensions": [extension]}, {"exec": spec})
    assert await header(made) == "Bearer t"
    info = orjson.loads((tmp_path / "info").read_text())
    assert info == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {
            "interactive": False,
            "cluster": {
                "server": "https://kube:6443",
                "certificate-authority-data": b64("ca"),
                "config": {"audience": "a"},
            },
        },
    }
    assert (tmp_path / "args").read_text() == "first e\n"


async def test_a_plugin_may_give_a_certificate(tmp_path: Path) -> None:
    path = plugin(tmp_path, f"echo '{credential(clientCertificateData='C', clientKeyData='K')}'")
    source = ExecPlugin(command(path))
    assert await source.header() == ""
    assert source.certificate() == Certificate(b"C", b"K")


async def test_a_plugin_runs_again_when_its_credential_expires(tmp_path: Path) -> None:
    status = credential(token="T", expirationTimestamp="2026-01-01T01:00:00Z").replace('"T"', "\"'$(wc -l < runs)'\"")
    path = plugin(tmp_path, f"cd {tmp_path}; echo x >> runs; echo '{status}'")
    now = [datetime.datetime(2026, 1, 1, 0, 0, tzinfo=datetime.UTC)]
    source = ExecPlugin(command(path), now=lambda: now[0])
    assert await source.header() == "Bearer 1"
    assert await source.header() == "Bearer 1"
    now[0] = datetime.datetime(2026, 1, 1, 0, 59, 55, tzinfo=datetime.UTC)
    assert await source.header() == "Bearer 2"
    source.renew()
    assert await source.header() == "Bearer 3"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo problem >&2; exit 3", "failed with exit code 3: problem"),
        ("echo nonsense", "printed no JSON"),
        ("echo '[]'", "printed no ExecCredential"),
        ('echo \'{"kind":"ExecCredential","apiVersion":"v0"}\'', "answered in apiVersion 'v0'"),
        (f'echo \'{{"kind":"ExecCredential","apiVersion":"{V1}"}}\'', "without status"),
        (f"echo '{credential()}'", "neither a token nor a client certificate"),
        (f"echo '{credential(clientKeyData='K')}'", "come only together"),
        (f"echo '{credential(token='t', expirationTimestamp='soon')}'", "not an RFC 3339 time"),
    ],
)
async def test_plugins_that_fail_say_so(tmp_path: Path, script: str, message: str) -> None:
    with pytest.raises(Unauthorized) as caught:
        await ExecPlugin(command(plugin(tmp_path, script))).header()
    assert message in caught.value.message
    assert caught.value.message.startswith("f: users[u].user.exec: ")


async def test_a_plugin_that_is_not_there_or_hangs(tmp_path: Path) -> None:
    with pytest.raises(Unauthorized, match="can't run '/none/plugin': No such file or directory; get it from x"):
        await ExecPlugin(command(Path("/none/plugin"), install_hint="get it from x\n")).header()
    hanging = plugin(tmp_path, "exec sleep 60")
    with pytest.raises(Unauthorized, match=r"no credential within 0\.1 s"):
        await ExecPlugin(command(hanging), timeout=0.1).header()


# In a pod


def test_the_service_account_of_a_pod(tmp_path: Path) -> None:
    env = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(ConfigError, match="automountServiceAccountToken"):
        in_cluster(root=tmp_path, env=env)
    for name, text in (("token", "t"), ("ca.crt", "CA"), ("namespace", "mine\n")):
        (tmp_path / name).write_text(text)
    made = in_cluster(root=tmp_path, env=env)
    assert (made.server, made.ca, made.namespace) == ("https://10.0.0.1:443", b"CA", "mine")
    assert isinstance(made.credential, TokenFile)
    assert (
        in_cluster(root=tmp_path, env={**env, "KUBERNETES_SERVICE_HOST": "fd00::1"}).server == "https://[fd00::1]:443"
    )
    with pytest.raises(ConfigError, match="not in a cluster"):
        in_cluster(root=tmp_path, env={})


def test_a_config_needs_a_url() -> None:
    with pytest.raises(ConfigError, match="must start with"):
        Config("kube")
    assert Config("https://kube").credential == Static()


def test_a_missing_file_of_kubeconfig_is_named_with_the_command_that_writes_it(tmp_path: Path) -> None:
    missing = tmp_path / "kubeconfig"
    with pytest.raises(ConfigError, match=r"kubeconfig does not exist: 'homeport up' writes one, or set KUBECONFIG"):
        load(env={"KUBECONFIG": str(missing)})
