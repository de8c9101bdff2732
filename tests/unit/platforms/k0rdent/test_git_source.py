"""Charts and manifests of Git repositories: which commit is read, with which account, and what is refused."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from homeport.api.k0rdent.v1beta1.template import HelmSpec, SourceSpec
from homeport.capi.chartsettings import ChartSettings
from homeport.helm.errors import SourceError
from homeport.helm.source.archive import pack
from homeport.helm.source.disk import unpacked
from homeport.helm.source.git import GitAccount, GitAddress, check_address, fetch_tree
from homeport.platforms.k0rdent.flux import definitions
from homeport.platforms.k0rdent.source import Sources
from homeport.runtime.testing import establish, plane
from unit.platforms.k0rdent.git_server import GitServer, git_server

CHART = "apiVersion: v2\nname: web\nversion: 1.0.0\n"
NONE = GitAccount()
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    with git_server(tmp_path) as found:
        yield found


async def test_a_commit_is_found_by_branch_tag_range_name_and_itself(server: GitServer) -> None:
    first = server.commit(note="1")
    server.git("tag", "v1.0.0")
    second = server.commit(note="2")
    server.git("tag", "v1.1.0")
    server.git("checkout", "-q", "-b", "next")
    third = server.commit(note="3", deep__er="x")
    server.git("checkout", "-q", "main")
    for address, commit in (
        (GitAddress(server.url), second),
        (GitAddress(server.url, branch="next"), third),
        (GitAddress(server.url, tag="v1.0.0"), first),
        (GitAddress(server.url, semver=">=1.0.0 <2.0.0"), second),
        (GitAddress(server.url, name="refs/heads/next"), third),
        (GitAddress(server.url, commit=first), first),
        (GitAddress(server.url, branch="main", commit=first), first),
    ):
        tree = await fetch_tree(address, NONE)
        assert tree.commit == commit, address
    assert (await fetch_tree(GitAddress(server.url, branch="next"), NONE)).files == {"note": b"3", "deep/er": b"x"}
    with pytest.raises(SourceError, match=r"no version matches '9.x'; the newest on offer are v1.1.0, v1.0.0"):
        await fetch_tree(GitAddress(server.url, semver="9.x"), NONE)
    with pytest.raises(SourceError, match=r"git fetch: .*couldn't find remote ref refs/heads/absent"):
        await fetch_tree(GitAddress(server.url, branch="absent"), NONE)
    with pytest.raises(SourceError, match=f"ref.commit: {'0' * 40} is not on any branch"):
        await fetch_tree(GitAddress(server.url, commit="0" * 40), NONE)


async def test_links_do_not_lead_out_of_the_repository(server: GitServer) -> None:
    (server.root / "demo" / "shadow").symlink_to("/etc/passwd")
    server.commit(**{"chart__Chart.yaml": CHART})
    tree = await fetch_tree(GitAddress(server.url), NONE)
    assert set(tree.files) == {"chart/Chart.yaml"}
    assert tree.below("./chart/", "here") == {"Chart.yaml": CHART.encode()}
    with pytest.raises(SourceError, match="leads out of the repository"):
        tree.below("chart/../..", "here")
    with pytest.raises(SourceError, match="has no folder other"):
        tree.below("other", "here")


async def test_an_account_is_used_and_never_shown(tmp_path: Path) -> None:
    with git_server(tmp_path, "me:hunter2") as server:
        server.commit(note="1")
        tree = await fetch_tree(GitAddress(server.url), GitAccount("me", "hunter2"))
        assert tree.files == {"note": b"1"}
        assert not [each for each in server.requests if "hunter2" in each]
        with pytest.raises(SourceError, match="git fetch") as refused:
            await fetch_tree(GitAddress(server.url), GitAccount("me", "wrong-horse"))
        assert "wrong-horse" not in str(refused.value)


@pytest.mark.parametrize(
    ("address", "account", "words"),
    [
        (GitAddress("http://git.example.com/a"), NONE, "only https:// and ssh:// are possible"),
        (GitAddress("file:///etc"), NONE, "only https:// and ssh:// are possible"),
        (GitAddress("https://me:hunter2@git.example.com/a"), NONE, "put it into a Secret"),
        (GitAddress("ssh://git@git.example.com/a"), NONE, "SSH private key at `identity`"),
        (GitAddress("https://git.example.com/a", branch="--upload-pack=sh"), NONE, "is not the name of a branch"),
        (GitAddress("https://git.example.com/a", name="+refs/heads/*:refs/heads/*"), NONE, "is not the name"),
        (GitAddress("https://git.example.com/a", commit="main"), NONE, "expected 40 hexadecimal digits"),
    ],
)
def test_addresses_that_are_refused(address: GitAddress, account: GitAccount, words: str) -> None:
    with pytest.raises(SourceError, match=words) as refused:
        check_address(address, account)
    assert "hunter2" not in str(refused.value)


async def test_a_plane_without_git_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SourceError, match="the program git is not installed on the machine of the plane: install it"):
        await fetch_tree(GitAddress("https://git.example.com/a"), NONE)


def test_the_same_files_make_the_same_archive() -> None:
    files = {"Chart.yaml": CHART.encode(), "templates/a.yaml": b"a: 1\n"}
    packed = pack("web", files)
    assert packed == pack("web", dict(reversed(files.items())))
    assert unpacked(packed, "here") == files


def repository(name: str, **spec: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": meta, "spec": spec}


async def test_templates_read_charts_and_manifests_through_a_git_repository(tmp_path: Path) -> None:
    with git_server(tmp_path, "me:hunter2") as server:
        server.commit(**{"charts__web__Chart.yaml": CHART, "manifests__a.yaml": CONFIG})
        async with plane() as p:
            await establish(p.client, *definitions())
            data = {key: base64.b64encode(value.encode()).decode() for key, value in ACCOUNT.items()}
            account = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "me", "namespace": "default"}}
            await p.have({**account, "data": data})
            await p.have(repository("demo", url=server.url, secretRef={"name": "me"}, ref={"branch": "main"}))
            await p.have(repository("signed", url=server.url, verify={"mode": "HEAD"}))
            sources = Sources(p.client, ChartSettings())
            ref = {"kind": "GitRepository", "name": "demo"}
            spec = {"chart": "charts/web", "sourceRef": ref}
            origin = await sources.find(msgspec.convert({"chartSpec": spec}, HelmSpec), "default")
            assert (await sources.fetch(origin)).chart.version == "1.0.0"
            local = msgspec.convert({"localSourceRef": ref, "path": "manifests"}, SourceSpec)
            holder = await sources.holder(local, "default", "spec.resources")
            assert await sources.files(holder) == {"a.yaml": CONFIG.encode()}
            remote = {"git": {"url": server.url, "secretRef": {"name": "me"}}}
            written = msgspec.convert({"remoteSourceSpec": remote, "path": "charts/web"}, SourceSpec)
            assert set(await sources.files(await sources.holder(written, "default", "x"))) == {"Chart.yaml"}
            signed = {"chart": "charts/web", "sourceRef": {"kind": "GitRepository", "name": "signed"}}
            with pytest.raises(SourceError, match=r"GitRepository default/signed: spec.verify is not supported"):
                await sources.find(msgspec.convert({"chartSpec": signed}, HelmSpec), "default")
            # Within its interval a repository is not asked again.
            count = len(server.requests)
            await sources.files(holder)
            assert len(server.requests) == count


ACCOUNT = {"username": "me", "password": "hunter2"}
