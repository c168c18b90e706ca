"""`RemoteMonitor`: posts the values of each epoch to a server."""

from __future__ import annotations

import urllib.parse
import warnings
from typing import TYPE_CHECKING, Any

from tapewright.core.messages.source_lines import user_stacklevel

from ..training.workers import is_first_worker
from .callback import Callback, OptionalLogs

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["RemoteMonitor"]

_TIMEOUT = 10  # seconds


class RemoteMonitor(Callback):
    """Post the values of each epoch to a server, as ``{"epoch": 0, "loss": 0.5}``.

    If the server cannot be reached, or does not respond within ten seconds, a warning
    is issued.

    Args:
        root: Address of the server, ``http://`` or ``https://``.
        path: Path on the server.
        field: Name of the form field that contains the JSON.
        headers: HTTP headers of the request, or None.
        send_as_json: If True, send the JSON itself, as "application/json", instead of a
            form.

    Raises:
        ValueError: If ``root`` is not an HTTP address.

    Example:
        >>> monitor = keras.callbacks.RemoteMonitor("http://localhost:9000", send_as_json=True)
    """

    def __init__(
        self,
        root: str = "http://localhost:9000",
        path: str = "/publish/epoch/end/",
        field: str = "data",
        headers: Mapping[str, str] | None = None,
        send_as_json: bool = False,
    ):
        super().__init__()
        if urllib.parse.urlsplit(root).scheme not in ("http", "https"):
            raise ValueError(
                f"RemoteMonitor: root must begin with http:// or https://, got {root!r}"
            )
        self.root = root
        self.path = path
        self.field = field
        self.headers = headers
        self.send_as_json = send_as_json

    def on_epoch_end(self, epoch: int, logs: OptionalLogs = None) -> None:
        if not is_first_worker(self.model):
            return
        import json  # with these the import of tapewright takes longer
        import urllib.error
        import urllib.request

        values = {name: _plain(value) for name, value in (logs or {}).items()}
        text = json.dumps({"epoch": epoch} | values)
        if self.send_as_json:
            data, kind = text, "application/json"
        else:
            data = urllib.parse.urlencode({self.field: text})
            kind = "application/x-www-form-urlencoded"
        headers = {"Content-Type": kind} | dict(self.headers or {})
        request = urllib.request.Request(self.root + self.path, data.encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT):
                pass
        except urllib.error.HTTPError as error:  # the server has answered
            error.close()
        except OSError as error:
            warnings.warn(
                f"Could not reach RemoteMonitor root server at {self.root}: {error}",
                stacklevel=user_stacklevel(),
            )


def _plain(value: Any) -> Any:
    """Convert a NumPy number or a tensor to a Python number; arrays to lists."""
    value = value.numpy() if hasattr(value, "numpy") else value
    return value.tolist() if hasattr(value, "tolist") else value
