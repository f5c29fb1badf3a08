"""What attempts may reach for: planted secrets, foreign processes, listening servers.

Everything here is made by the test and taken away after it. `World` is made as the
runner's user; nothing else on the machine is touched.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import sqlite3
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any

SECRET = "canary-" + "b7e1f3-never-seen-inside"
KEY = "canary-" + "a91c44-of-the-runtime"


class World:
    """The outside."""

    def __init__(self, victim_uid: int | None) -> None:
        self.victim_uid = victim_uid
        self.folder = Path(tempfile.mkdtemp(prefix="nx-world-"))
        self.folder.chmod(0o755)
        self.arrived: set[str] = set()
        self._sockets: list[socket.socket] = []
        self.secret_dir = self.folder / "secrets"
        self.secret_dir.mkdir()
        self.secret = self.secret_dir / "secret.txt"
        self.secret.write_text(SECRET, encoding="utf-8")
        module = self.secret_dir / "secretmodule.py"
        module.write_text(f"VALUE = {SECRET!r}\n", encoding="utf-8")
        self.secret_db = self.secret_dir / "secret.db"
        base = sqlite3.connect(self.secret_db)
        base.execute("create table t (x)")
        base.execute("insert into t values (?)", (SECRET,))
        base.commit()
        base.close()
        self.other = self.folder / "other"
        self.other.mkdir()
        (self.other / "theirs.txt").write_text(SECRET, encoding="utf-8")
        self.ports = {
            "tcp": self._listen(socket.AF_INET, ("127.0.0.1", 0)),
            "udp": self._listen(socket.AF_INET, ("127.0.0.1", 0), datagram=True),
        }
        with contextlib.suppress(OSError):
            self.ports["tcp6"] = self._listen(socket.AF_INET6, ("::1", 0))
        self._listen(socket.AF_UNIX, str(self.folder / "host.sock"))
        self._listen(socket.AF_UNIX, str(self.folder / "host.dgram"), datagram=True)
        (self.folder / "host.sock").chmod(0o777)
        (self.folder / "host.dgram").chmod(0o777)
        self.abstract = f"nx-world-{os.urandom(6).hex()}"
        self._listen(socket.AF_UNIX, "\0" + self.abstract)

    def _listen(self, family: int, place: Any, *, datagram: bool = False) -> int:
        kind = socket.SOCK_DGRAM if datagram else socket.SOCK_STREAM
        server = socket.socket(family, kind)
        server.bind(place)
        if not datagram:
            server.listen(16)
        self._sockets.append(server)
        threading.Thread(
            target=self._serve, args=(server, datagram), daemon=True
        ).start()
        name = server.getsockname()
        return name[1] if isinstance(name, tuple) else 0

    def _serve(self, server: socket.socket, datagram: bool) -> None:
        with contextlib.suppress(OSError):
            while True:
                if datagram:
                    self._note(server.recv(200))
                    continue
                peer, _ = server.accept()
                peer.settimeout(1)
                with peer, contextlib.suppress(OSError):
                    self._note(peer.recv(200))

    def _note(self, data: bytes) -> None:
        self.arrived.add(data.decode("utf-8", "replace").strip())

    def victim(self) -> subprocess.Popen[bytes]:
        """A process of the user that scripts run as, to be attacked."""
        given: dict[str, Any] = {}
        if self.victim_uid is not None:
            given = {"user": self.victim_uid, "extra_groups": []}
        return subprocess.Popen(["/bin/sleep", "20"], env={}, **given)

    def workspace(self, name: str) -> tuple[Path, dict[str, Any]]:
        """A fresh workspace and folder outside, and what the script is told of both."""
        folder = self.folder / "workspaces" / name
        folder.mkdir(parents=True)
        target = self.folder / "targets" / name
        target.mkdir(parents=True)
        target.chmod(0o777)
        (target / "t.txt").write_text("original", encoding="utf-8")
        (target / "t.txt").chmod(0o666)
        (folder / "planted-link").symlink_to(self.secret)
        (folder / "planted-target").symlink_to(target / "t.txt")
        if name == "net_unix_in_workspace":
            self._listen(socket.AF_UNIX, str(folder / "host.sock"))
            (folder / "host.sock").chmod(0o777)
        told = {
            "secret": str(self.secret),
            "secret_dir": str(self.secret_dir),
            "secret_db": str(self.secret_db),
            "other_workspace": str(self.other),
            "target": str(target),
            "token": f"token-{name}",
            "mark": f"mark-{name}-{os.getpid()}",
            "unix": str(self.folder / "host.sock"),
            "unix_datagram": str(self.folder / "host.dgram"),
            "abstract": self.abstract,
            "tcp6": 0,
            **self.ports,
        }
        return folder, told

    def close(self) -> None:
        """Take everything away."""
        for server in self._sockets:
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            server.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def state(folder: Path) -> list[tuple[str, int, float, bytes]]:
    """Everything of a small folder that an attempt could change."""
    found: list[tuple[str, int, float, bytes]] = []
    for path in sorted(folder.rglob("*")):
        entry = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        with contextlib.suppress(OSError):
            content += b"".join(os.getxattr(path, name) for name in os.listxattr(path))
        found.append((path.name, entry.st_mode, entry.st_mtime, content))
    return found
