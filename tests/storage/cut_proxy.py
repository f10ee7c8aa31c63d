"""A way to a server on a Unix socket that can be cut when a commit passes, before it or after its answer."""

from __future__ import annotations

import contextlib
import select
import socket
import threading

_COMMIT = b"COMMIT\0"


class CutProxy:
    """Passes bytes between clients on a port of 127.0.0.1 and a server.

    Set ``cut`` to ``"before"`` to lose the next commit itself, to ``"after"`` to lose its answer; with
    ``stay_down`` nobody gets through from then on, until it is taken back.
    """

    def __init__(self, path: str):
        self._path = path
        self.cut: str | None = None
        self.stay_down = False
        self._down = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.stay_down and self._down:
                    client.close()
                    continue
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        server = socket.socket(socket.AF_UNIX)
        other = {client: server, server: client}
        with client, server, contextlib.suppress(OSError):
            server.connect(self._path)
            while True:
                for source in select.select([client, server], [], [])[0]:
                    data = source.recv(65_536)
                    if not data:
                        return
                    if source is client and self.cut is not None and data.endswith(_COMMIT):
                        cut, self.cut = self.cut, None
                        self._down = True
                        if cut == "after":
                            server.sendall(data)
                            server.recv(65_536)  # the server has committed and says so, to nobody
                        return
                    other[source].sendall(data)
