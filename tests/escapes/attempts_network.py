"""Attempts to reach a network, a socket of the host, or another kernel channel."""

from __future__ import annotations

from escapes.attempt import Attempt, attempts

_INT80 = """\
import mmap
# i386 socketcall through int 0x80: socket(AF_INET, SOCK_STREAM, 0).
code = bytes.fromhex('53' 'b866000000' 'bb01000000' '89f9' 'cd80' '5b' 'c3')
low = mmap.mmap(-1, 4096, prot=7)
args = mmap.mmap(-1, 4096, flags=0x22 | 0x40)  # MAP_32BIT
args.write(struct.pack('III', 2, 1, 0))
low.write(code)
at = lambda m: ctypes.addressof(ctypes.c_char.from_buffer(m))
call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_long, ctypes.c_long)(at(low))
fd = call(at(args), 0)
if fd >= 0:
    s = socket.socket(fileno=fd)
    s.connect(('127.0.0.1', W['tcp'])); s.sendall(W['token'].encode())
"""

ATTEMPTS: list[Attempt] = attempts(
    "network",
    (
        "net_tcp",
        "s = socket.create_connection(('127.0.0.1', W['tcp']), 1)\n"
        "s.sendall(W['token'].encode())",
        "listener",
    ),
    (
        "net_tcp6",
        "s = socket.create_connection(('::1', W['tcp6']), 1)\n"
        "s.sendall(W['token'].encode())",
        "listener",
    ),
    (
        "net_udp",
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "s.sendto(W['token'].encode(), ('127.0.0.1', W['udp']))",
        "listener",
    ),
    (
        "net_fast_open",
        "s = socket.socket()\n"
        "s.sendto(W['token'].encode(), 0x20000000, ('127.0.0.1', W['tcp']))",
        "listener",
    ),
    (
        "net_unix",
        "s = socket.socket(socket.AF_UNIX); s.connect(W['unix'])\n"
        "s.sendall(W['token'].encode())",
        "listener",
    ),
    (
        "net_unix_datagram",
        "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
        "s.sendto(W['token'].encode(), W['unix_datagram'])",
        "listener",
    ),
    (
        "net_unix_in_workspace",
        "s = socket.socket(socket.AF_UNIX); s.connect('host.sock')\n"
        "s.sendall(W['token'].encode())",
        "listener",
    ),
    (
        "net_abstract",
        "s = socket.socket(socket.AF_UNIX); s.connect('\\0' + W['abstract'])\n"
        "s.sendall(W['token'].encode())",
        "listener",
    ),
    (
        "net_socketpair_connect",
        "a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
        "a.sendto(W['token'].encode(), W['unix_datagram'])",
        "listener",
    ),
    ("net_vsock", "socket.socket(40, socket.SOCK_STREAM); fired()"),
    ("net_netlink", "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW); fired()"),
    (
        "net_packet",
        "socket.socket(socket.AF_PACKET, socket.SOCK_RAW); fired()",
    ),
    (
        "net_raw",
        "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1); fired()",
    ),
    ("net_alg", "socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET); fired()"),
    (
        "net_shell",
        "subprocess.run(['bash', '-c',\n"
        '    f\'echo {W["token"]} > /dev/tcp/127.0.0.1/{W["tcp"]}\'])',
        "listener",
    ),
    (
        "net_listen",
        "s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()\n"
        "print('PORT', s.getsockname()[1], flush=True); time.sleep(0.7)",
        "connect",
    ),
    ("net_int80", _INT80, "listener"),
    (
        "net_x32",
        "fd = syscall(0x40000000 + 41, 2, 1, 0)\nif fd >= 0: fired(fd)",
    ),
)
