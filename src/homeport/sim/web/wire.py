"""The server of the web sites."""

from __future__ import annotations

from aiohttp.web import BaseRequest, Response, StreamResponse

from homeport.sim.web.content import file_of


async def respond(request: BaseRequest) -> StreamResponse:
    host = request.headers.get("Host", "").partition(":")[0]
    found = file_of(host, request.path)
    if found is None:
        return Response(status=404, text=f"{host} has no file {request.path}\n")
    if request.method not in ("GET", "HEAD"):
        return Response(status=405, text=f"{request.method} is not allowed\n")
    headers = {"Content-Length": str(len(found)), "Content-Type": "application/octet-stream"}
    return Response(body=b"" if request.method == "HEAD" else found, headers=headers)
