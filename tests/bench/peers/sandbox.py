"""The alternatives of a user: a Python by hand with limits, and bubblewrap. Each runs one program and returns its output."""
import os
import resource
import shutil
import subprocess
import tempfile

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
BINDS = ["--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--symlink", "usr/bin", "/bin",
         "--ro-bind", "/etc/ld.so.cache", "/etc/ld.so.cache", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
PYTHON = "/usr/bin/python3"


def limits():
    for kind, value in ((resource.RLIMIT_CPU, 5), (resource.RLIMIT_AS, 1 << 30), (resource.RLIMIT_NOFILE, 64), (resource.RLIMIT_FSIZE, 1 << 24), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(kind, (value, value))


def run(command, text, limited):
    done = subprocess.run(command, input=text.encode(), capture_output=True, timeout=60, preexec_fn=limits if limited else None, env=ENVIRONMENT, check=True)
    return done.stdout.decode()


def by_hand(command):
    return lambda text: run(command, text, True)


def jailed(command):
    bubblewrap = shutil.which("bwrap")
    return bubblewrap and (lambda text: run([bubblewrap, "--unshare-all", "--die-with-parent", "--new-session", *BINDS, *command], text, False))


def python(source):
    return {"python3 -c with limits": by_hand([PYTHON, "-c", source]), "python3 -I -S -c with limits": by_hand([PYTHON, "-I", "-S", "-c", source]),
            "bubblewrap, python3 -c": jailed([PYTHON, "-c", source])}


def shell(source):
    return {"sh -c with limits": by_hand(["/bin/sh", "-c", source]), "bubblewrap, sh -c": jailed(["/bin/sh", "-c", source])}


def compiled(source):
    """The compiler's time is not in it: both sides compile a program once."""
    folder = tempfile.mkdtemp(prefix="bench-", dir="/tmp")
    path = os.path.join(folder, "program")
    subprocess.run(["gcc", "-O2", "-w", "-x", "c", "-o", path, "-"], input=source.encode(), check=True)
    bubblewrap = jailed([])
    return {"a C program with limits": by_hand([path])} | ({"bubblewrap, a C program": lambda text: run(
        [shutil.which("bwrap"), "--unshare-all", "--die-with-parent", "--new-session", *BINDS, "--ro-bind", path, "/program", "/program"], text, False)} if bubblewrap else {})
