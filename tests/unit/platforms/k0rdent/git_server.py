"""A Git repository on loopback, served as git serves them over HTTP, with an account if one is asked for."""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

_WHO = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com"}
_WHO |= {each.replace("AUTHOR", "COMMITTER"): value for each, value in _WHO.items()}


@dataclass
class GitServer:
    root: Path
    account: str = ""  # user:password; '': everybody may read
    port: int = 0
    requests: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/demo"

    def git(self, *arguments: str) -> str:
        plain = {"PATH": os.environ["PATH"], "HOME": str(self.root), "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.root / "demo",
            env={**plain, **_WHO},
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def commit(self, **files: str) -> str:
        """The new commit. `__` in a name is a slash."""
        for name, content in files.items():
            path = self.root / "demo" / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        self.git("add", "-A")
        self.git("commit", "-qm", "change")
        return self.git("rev-parse", "HEAD")


@contextmanager
def git_server(root: Path, account: str = "") -> Iterator[GitServer]:
    server = GitServer(root, account)
    (root / "demo").mkdir()
    server.git("init", "-q", "-b", "main")
    web = ThreadingHTTPServer(("127.0.0.1", 0), _handler(server))
    server.port = web.server_address[1]
    thread = Thread(target=web.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        web.shutdown()
        web.server_close()
        thread.join()


def _handler(server: GitServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            del arguments

        def do_GET(self) -> None:
            self._serve()

        def do_POST(self) -> None:
            self._serve()

        def _serve(self) -> None:
            server.requests.append(self.path)
            expected = f"Basic {base64.b64encode(server.account.encode()).decode()}"
            if server.account and self.headers.get("Authorization") != expected:
                self.send_response(401)
                self.send_header("WWW-Authenticate", "Basic realm=git")
                self.end_headers()
                return
            path, _, query = self.path.partition("?")
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            done = subprocess.run(
                ["git", "http-backend"],
                input=body,
                check=True,
                capture_output=True,
                env={
                    "PATH": os.environ["PATH"],
                    "HOME": str(server.root),
                    "GIT_PROJECT_ROOT": str(server.root),
                    "GIT_HTTP_EXPORT_ALL": "1",
                    "REQUEST_METHOD": self.command,
                    "PATH_INFO": path,
                    "QUERY_STRING": query,
                    "CONTENT_TYPE": self.headers.get("Content-Type") or "",
                    "CONTENT_LENGTH": str(len(body)),
                    "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding") or "",
                    "GIT_PROTOCOL": self.headers.get("Git-Protocol") or "",
                },
            )
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            lines = [line.partition(": ") for line in head.decode().split("\r\n")]
            status = next((value for name, _, value in lines if name == "Status"), "200")
            self.send_response(int(status.split()[0]))
            for name, _, value in lines:
                if name != "Status":
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

    return Handler
