"""https: the certificate must fit the name, while the address is the checked one."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from neuraxis.sandbox.http.client import Limits, Response, fetch
from neuraxis.sandbox.http.connection import RequestFailed

openssl = shutil.which("openssl")
pytestmark = pytest.mark.skipif(openssl is None, reason="openssl makes the certificate")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for secure.example that nobody trusts yet, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    asked = (
        "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=secure.example "
        "-addext subjectAltName=DNS:secure.example"
    )
    places = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(
        [str(openssl), *asked.split(), *places], check=True, capture_output=True
    )
    return certificate, key


@pytest.fixture
def server(certificate: tuple[Path, Path]) -> Iterator[tuple[int, list[str | None]]]:
    """A TLS server on loopback: its port, and the names it was asked for."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    names: list[str | None] = []
    context.sni_callback = lambda sock, name, ctx: names.append(name)
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.05)
    ended = threading.Event()

    def work() -> None:
        while not ended.is_set():
            with suppress(OSError):
                client, _ = listener.accept()
                client.settimeout(5)
                with client, context.wrap_socket(client, server_side=True) as secure:
                    secure.recv(65536)
                    secure.sendall(
                        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                        b"Content-Length: 6\r\n\r\nsecret"
                    )

    thread = threading.Thread(target=work)
    thread.start()
    yield listener.getsockname()[1], names
    ended.set()
    thread.join()
    listener.close()


def _get(url: str, port: int, reached: list[str]) -> Response:
    def connect(address: str, given: int, seconds: float) -> socket.socket:
        reached.append(address)
        return socket.create_connection(("127.0.0.1", port), timeout=seconds)

    return fetch(
        url,
        limits=Limits(seconds=5),
        resolver=lambda host, given: ["93.184.216.34"],
        connect=connect,
    )


def test_trusted_name_is_read_at_the_checked_address(
    server: tuple[int, list[str | None]],
    certificate: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SNI and verification use the name; the connection goes to the address."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    port, names = server
    reached: list[str] = []
    answer = _get("https://secure.example/x", port, reached)
    assert (b"secret", "https://secure.example/x") == (answer.body, answer.url)
    assert (["93.184.216.34"], ["secure.example"]) == (reached, names)


@pytest.mark.parametrize(
    ("host", "trusted", "message"),
    [
        ("other.example", True, "certificate is not valid.*Hostname mismatch"),
        ("93.184.216.34", True, "certificate is not valid.*IP address mismatch"),
        ("secure.example", False, "certificate is not valid"),
    ],
)
def test_other_certificates_are_refused(
    host: str,
    trusted: bool,
    message: str,
    server: tuple[int, list[str | None]],
    certificate: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A wrong name, an address the certificate does not hold, an unknown issuer."""
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    with pytest.raises(RequestFailed, match=message):
        _get(f"https://{host}/", server[0], [])


@pytest.mark.parametrize("page", ["https://secure.example/x", "secure.example/x"])
def test_a_forged_certificate_is_not_passed_over_without_tls(
    page: str, server: tuple[int, list[str | None]]
) -> None:
    """Without a scheme http is tried only where nobody speaks TLS."""
    ports: list[int] = []

    def connect(address: str, port: int, seconds: float) -> socket.socket:
        ports.append(port)
        return socket.create_connection(("127.0.0.1", server[0]), timeout=seconds)

    with pytest.raises(RequestFailed, match="certificate is not valid"):
        fetch(
            page,
            limits=Limits(seconds=5),
            resolver=lambda host, port: ["93.184.216.34"],
            connect=connect,
        )
    assert ports == [443]
