"""Attempts on the environment, on files outside, and on what others obey."""

from __future__ import annotations

from dataclasses import replace

from escapes.attempt import Attempt, attempts

_READ = attempts(
    "fs-read",
    ("read_plain", "print(open(W['secret']).read())"),
    ("read_planted_link", "print(open('planted-link').read())"),
    ("read_own_link", "os.symlink(W['secret'], 'l'); print(open('l').read())"),
    ("read_hard_link", "os.link(W['secret'], 'h'); print(open('h').read())"),
    (
        "read_dot_dot",
        "print(open('/'.join(['..'] * 20) + W['secret']).read())",
    ),
    (
        "read_proc_root",
        "for p in ['self', *filter(str.isdigit, os.listdir('/proc'))]:\n"
        "    try: print(open(f'/proc/{p}/root' + W['secret']).read())\n"
        "    except OSError: pass",
    ),
    (
        "read_proc_cwd",
        "for p in filter(str.isdigit, os.listdir('/proc')):\n"
        "    try: print(open(f'/proc/{p}/cwd/' + '../' * 20 + W['secret']).read())\n"
        "    except OSError: pass",
    ),
    (
        "read_dir_fd",
        "fd = os.open('.', os.O_RDONLY)\n"
        "for _ in range(20): fd = os.open('..', os.O_RDONLY, dir_fd=fd)\n"
        "print(os.read(os.open(W['secret'][1:], os.O_RDONLY, dir_fd=fd), 99))",
    ),
    ("read_cat", "subprocess.run(['cat', W['secret']])"),
    (
        "read_sqlite",
        "import sqlite3\ntry:\n"
        "    c = sqlite3.connect(W['secret_db'])\n"
        "    print(c.execute('select * from t').fetchall())\n"
        "except sqlite3.Error as e: print(e)",
    ),
    (
        "read_libc",
        "b = ctypes.create_string_buffer(200)\n"
        "fd = libc.open(W['secret'].encode(), 0)\n"
        "libc.read(fd, b, 199); print(b.value)",
    ),
    (
        "read_mmap",
        "import mmap\nf = open(W['secret'], 'rb')\n"
        "print(mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)[:])",
    ),
    ("read_listing", "'secret.txt' in os.listdir(W['secret_dir']) and fired()"),
    ("read_copy", "print(open(shutil.copy(W['secret'], 'copy')).read())"),
    (
        "read_sendfile",
        "fd = os.open(W['secret'], os.O_RDONLY); os.sendfile(1, fd, 0, 99)",
    ),
    (
        "read_o_path",
        "fd = os.open(W['secret'], os.O_PATH)\n"
        "print(open(f'/proc/self/fd/{fd}').read())",
    ),
    (
        "read_chroot",
        "os.mkdir('r'); fd = os.open('/', 0); os.chroot('r'); os.fchdir(fd)\n"
        "os.chdir('../' * 20); os.chroot('.'); print(open(W['secret']).read())",
    ),
    (
        "read_mount",
        "os.makedirs('m', exist_ok=True)\n"
        "libc.unshare(0x10020000)\n"
        "r = libc.mount(W['secret_dir'].encode(), b'm', b'', 4096, None)\n"
        "print(r, open('m/secret.txt').read())",
    ),
    (
        "read_other_workspace",
        "print(open(W['other_workspace'] + '/theirs.txt').read())",
    ),
)

_ENVIRONMENT = attempts(
    "environment",
    ("env_own", "print(dict(os.environ)); print(open('/proc/self/environ').read())"),
    (
        "env_of_all",
        "for p in filter(str.isdigit, os.listdir('/proc')):\n"
        "    try: print(open(f'/proc/{p}/environ').read())\n"
        "    except OSError: pass",
    ),
    (
        "env_descriptors",
        "for fd in range(3, 256):\n"
        "    try:\n"
        "        os.lseek(fd, 0, 0); print(os.read(fd, 200))\n"
        "    except OSError: pass",
    ),
    (
        "env_command_lines",
        "for p in filter(str.isdigit, os.listdir('/proc')):\n"
        "    try: print(open(f'/proc/{p}/cmdline').read())\n"
        "    except OSError: pass",
    ),
    (
        "env_getenv",
        "libc.getenv.restype = ctypes.c_char_p; print(libc.getenv(b'NX_KEY'))",
    ),
)

_INFO = [
    replace(attempt, high=False)
    for attempt in attempts(
        "fs-info",
        ("info_stat", "fired(os.stat(W['secret']).st_size)"),
        ("info_exists", "os.path.exists(W['secret']) and fired()"),
    )
]

_WRITE = attempts(
    "fs-write",
    ("write_change", "open(W['target'] + '/t.txt', 'w').write('changed')", "target"),
    ("write_append", "open(W['target'] + '/t.txt', 'a').write('more')", "target"),
    ("write_new", "open(W['target'] + '/new.txt', 'w').write('new')", "target"),
    ("write_delete", "os.unlink(W['target'] + '/t.txt')", "target"),
    (
        "write_rename",
        "os.rename(W['target'] + '/t.txt', W['target'] + '/u.txt')",
        "target",
    ),
    (
        "write_rename_in",
        "open('mine', 'w').write('x'); os.rename('mine', W['target'] + '/t.txt')",
        "target",
    ),
    ("write_link", "os.symlink('/', W['target'] + '/l')", "target"),
    (
        "write_hard_link",
        "open('mine', 'w').write('x'); os.link('mine', W['target'] + '/h')",
        "target",
    ),
    ("write_mode", "os.chmod(W['target'] + '/t.txt', 0o777)", "target"),
    ("write_times", "os.utime(W['target'] + '/t.txt', (1, 1))", "target"),
    ("write_folder", "os.mkdir(W['target'] + '/d')", "target"),
    ("write_truncate", "os.truncate(W['target'] + '/t.txt', 0)", "target"),
    (
        "write_attribute",
        "os.setxattr(W['target'] + '/t.txt', 'user.x', b'1')",
        "target",
    ),
    ("write_planted_link", "open('planted-target', 'w').write('changed')", "target"),
    ("write_shell", "os.system('echo x > ' + W['target'] + '/t.txt')", "target"),
    (
        "write_proc_root",
        "open('/proc/self/root' + W['target'] + '/t.txt', 'w').write('x')",
        "target",
    ),
    (
        "write_kernel_setting",  # opened and closed, never written
        "os.close(os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY)); fired()",
    ),
    (
        "write_interpreter",
        "import sysconfig\n"
        "p = sysconfig.get_paths()['purelib'] + '/neuraxis-escape.txt'\n"
        "open(p, 'w').close(); os.unlink(p); fired()",
    ),
    (
        "write_set_id_mode",
        "open('s', 'w').close(); os.chmod('s', 0o4755)",
        "workspace",
    ),
    (
        "write_set_id_open",
        "os.umask(0); os.close(os.open('s', os.O_CREAT | os.O_WRONLY, 0o6755))",
        "workspace",
    ),
    (
        "write_settings",
        "open('neuraxis.toml', 'w').write('[sandbox]\\nmode = \"none\"')",
        "workspace",
    ),
    (
        "write_git_hook",
        "os.makedirs('.git/hooks', exist_ok=True)\n"
        "open('.git/hooks/post-checkout', 'w').write('#!/bin/sh')",
        "workspace",
    ),
    ("write_device", "os.mknod('dev', 0o20666, os.makedev(1, 5)); fired()"),
)

ATTEMPTS: list[Attempt] = [*_ENVIRONMENT, *_READ, *_INFO, *_WRITE]
