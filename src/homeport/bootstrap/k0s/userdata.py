"""What a machine should do on its first boot to run k0s, as user data for cloud-init. Pure."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from email.mime.multipart import MIMEMultipart
from email.mime.nonmultipart import MIMENonMultipart
from typing import Any

from homeport.bootstrap.document import dump_yaml
from homeport.bootstrap.kubeadm.userdata import File, ended

Json = dict[str, Any]

_HEADER = "#cloud-config\n"
# Lists of the user's part come behind ours, so that our commands and files stay.
_MERGE = "list(append)+dict(no_replace,recurse_list)+str()"
_BOUNDARY = "homeport-user-data"


@dataclass(frozen=True, slots=True)
class K0sData:
    files: tuple[File, ...]
    commands: tuple[str, ...]
    custom: str = ""  # the user's own user data


def render_cloud_config(data: K0sData) -> str:
    config: Json = {"write_files": [_file(each) for each in data.files], "runcmd": list(data.commands)}
    text = _HEADER + dump_yaml(config)
    return _merged(text, data.custom) if data.custom else text


def _file(file: File) -> Json:
    entry: Json = {"path": file.path}
    if file.encoding:
        entry["encoding"] = file.encoding
    entry["permissions"] = file.permissions or "0644"
    entry["content"] = file.content if file.encoding else ended(file.content)
    return entry


def _merged(ours: str, custom: str) -> str:
    """Both as parts of one message, which cloud-init merges."""
    message = MIMEMultipart("mixed", boundary=_BOUNDARY)
    for text in (ours, custom):
        kind = "x-shellscript" if text.startswith("#!") else "cloud-config"
        part = MIMENonMultipart("text", kind, charset="utf-8")
        part["Content-Transfer-Encoding"] = "base64"
        part["X-Merge-Type"] = _MERGE
        part.set_payload(base64.encodebytes(text.encode()).decode())
        message.attach(part)
    return message.as_string()
