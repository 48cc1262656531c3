"""Traces outside of a program that breaks out: connections, signals, files, processes, memory, mounts."""
import glob
import os
import re
import socket
import threading
import time

MIB = 1 << 20
SANITIZED = bool(os.environ.get("ROLLOUTD_SANITIZED"))
GROWTH = (512 if SANITIZED else 16) * MIB  # of the service; a sanitizer keeps what was freed for a while
FAMILY = (2048 if SANITIZED else 64) * MIB  # of all its processes: a slot keeps compiled programs
SHARED = 64 * MIB  # of the machine's shared memory, which others use, too
KEPT = {"descriptors": 140}  # beyond those of before: a slot holds up to 128 compiled programs
QUIET, SETTLE = 2.0, 1.0
PATIENCE = 10 if SANITIZED else 1
NAMES = ("rolloutd_marker", "rolloutd_pwn", "nb_*", ".nb_*", "attack_*")
FOLDERS = ("/tmp", "/dev/shm", "/var/tmp", "/run/lock", "/usr/lib/python3/dist-packages", "/usr/lib/python3.11/__pycache__")


class Listeners:
    """Sockets that nobody must reach from inside."""

    def __init__(self, folder):
        self.hits, self.sockets = [], []
        self.tcp = self.listen(socket.socket(), ("127.0.0.1", 0), "tcp").getsockname()[1]
        self.abstract = f"rolloutd-cases-{os.getpid()}-{id(self)}"
        self.listen(socket.socket(socket.AF_UNIX), "\0" + self.abstract, "abstract socket")
        self.path = os.path.join(folder, "canary.sock")
        self.listen(socket.socket(socket.AF_UNIX), self.path, "path socket")
        self.udp = self.receive(socket.AF_INET, ("127.0.0.1", 0), "udp").getsockname()[1]
        self.receive(socket.AF_UNIX, "\0" + self.abstract + "-datagram", "abstract datagram socket")
        self.receive(socket.AF_UNIX, self.path + "-datagram", "path datagram socket")
        for path in (self.path, self.path + "-datagram"):
            os.chmod(path, 0o777)

    def listen(self, server, address, name):
        server.bind(address)
        server.listen(16)
        self.serve(server, name, lambda: server.accept()[0].close())
        return server

    def receive(self, family, address, name):
        server = socket.socket(family, socket.SOCK_DGRAM)
        server.bind(address)
        self.serve(server, name, lambda: server.recvfrom(64))
        return server

    def serve(self, server, name, wait):
        self.sockets.append(server)
        threading.Thread(target=self.count, args=(name, wait), daemon=True).start()

    def count(self, name, wait):
        try:
            while True:
                wait()
                self.hits.append(name)
        except OSError:
            pass

    def close(self):
        for server in self.sockets:
            server.close()


# -- processes ------------------------------------------------------------------------------------------

def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def read_stat(pid):
    """(state, parent) of a process, or None."""
    fields = read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return (fields[0], int(fields[1])) if len(fields) > 1 else None


def processes():
    found = {int(name): read_stat(name) for name in os.listdir("/proc") if name.isdigit()}
    return {pid: stat for pid, stat in found.items() if stat}


def descendants(root):
    table, children = processes(), {}
    for pid, (_, parent) in table.items():
        children.setdefault(parent, []).append(pid)
    found, queue = {}, [root]
    while queue:
        for pid in children.get(queue.pop(), []):
            if pid not in found:
                found[pid] = table[pid][0]
                queue.append(pid)
    return found


def resident(pid):
    match = re.search(r"VmRSS:\s+(\d+)", read(f"/proc/{pid}/status"))
    return int(match.group(1)) * 1024 if match else 0


def private(pid):
    """Memory that is this process's alone: RSS counts the pages that forks share again and again."""
    match = re.search(r"^Pss:\s+(\d+)", read(f"/proc/{pid}/smaps_rollup"), re.M)
    return int(match.group(1)) * 1024 if match else 0


def descriptors(pid):
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0


def namespaces(pids):
    found = set()
    for pid in pids:
        for kind in ("pid", "mnt", "ipc", "net", "user", "uts"):
            try:
                found.add(os.readlink(f"/proc/{pid}/ns/{kind}"))
            except OSError:
                pass
    return found


# -- the machine ----------------------------------------------------------------------------------------

def sysv():
    """Every System V object of this namespace: kind, key, id."""
    return {f"System V {kind} {' '.join(line.split()[:2])}" for kind in ("shm", "msg", "sem")
            for line in read(f"/proc/sysvipc/{kind}").splitlines()[1:]}


def mounts(pid="self"):
    return {"mount " + line.split()[4] for line in read(f"/proc/{pid}/mountinfo").splitlines()}


def abstract_sockets():
    return {"socket " + word for word in re.findall(r"@\S+$", read("/proc/net/unix"), re.M) if re.search("nb_|attack_", word)}


def marked_files():
    return {f"file {path}" for folder in FOLDERS for name in NAMES for path in glob.glob(os.path.join(folder, name))}


def memory_figure(path, names):
    return sum(int(number) for name, number in re.findall(r"^(\w+):\s+(\d+) kB", read(path), re.M) if name in names) * 1024


def shared_memory():
    return memory_figure("/proc/meminfo", ("Shmem",))


class Memory(threading.Thread):
    """The most that the processes below `pid` take, with what the kernel holds for them: pages, shared memory, tables, objects."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.most, self.done = pid, 0, threading.Event()

    def now(self):
        processes = sum(memory_figure(f"/proc/{pid}/status", ("RssAnon",)) for pid in descendants(self.pid))
        return processes + memory_figure("/proc/meminfo", ("Shmem", "PageTables", "SUnreclaim"))

    def run(self):
        before = self.now()
        while not self.done.wait(0.02):
            self.most = max(self.most, self.now() - before)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.join()

    def problem(self, limit_mb):
        return f"{self.most // MIB} MiB taken" if self.most > limit_mb * MIB else None


def traces(folders):
    """Everything that a program could leave on the machine. In the service's own folders nothing is new but its database's files."""
    own = {"file " + os.path.join(folder, name) for folder in folders for name in os.listdir(folder) if ".db" not in name}
    return sysv() | mounts() | abstract_sockets() | marked_files() | own


def family(root):
    """How much there is of a service and the processes below it."""
    pids = [root, *descendants(root)]
    return {"processes": len(pids) - 1, "namespaces": len(namespaces(pids)),
            "descriptors": sum(map(descriptors, pids)), "mounts": max((len(mounts(pid)) for pid in pids), default=0)}


class Watch:
    """A service's surroundings: what was there before, and what is wrong with them now."""

    def __init__(self, pid, folders):
        self.pid, self.folders = pid, folders
        self.before, self.traces = self.most(), traces(folders)
        self.memory, self.allowance = resident(pid), GROWTH
        self.own = sum(private(one) for one in (pid, *descendants(pid)))
        self.shared = shared_memory()

    def most(self):
        """Warm slots come and go: the largest number seen in a quiet while is the normal one."""
        end, most = time.monotonic() + QUIET, {}
        while time.monotonic() < end:
            most = {name: max(count, most.get(name, 0)) for name, count in family(self.pid).items()}
            time.sleep(0.05)
        return most

    def problem(self):
        """Waits a moment for what ends by itself; None, or a sentence."""
        end = time.monotonic() + SETTLE * PATIENCE
        while True:
            found = self.left()
            if not found or time.monotonic() > end:
                return found or self.grown()
            time.sleep(0.05)

    def left(self):
        now = family(self.pid)
        for name, count in now.items():
            if count > self.before[name] + KEPT.get(name, 0):
                return f"{count} {name}, {self.before[name]} before; states {''.join(sorted(descendants(self.pid).values()))}"
        new = traces(self.folders) - self.traces
        return f"left on the machine: {', '.join(sorted(new))}" if new else None

    def grown(self):
        by = resident(self.pid) - self.memory
        return f"memory of the service grew by {by // MIB} MiB" if by > self.allowance else None

    def last_problem(self):
        """Once, at the end: figures that need a wide margin."""
        own = sum(private(one) for one in (self.pid, *descendants(self.pid))) - self.own
        shared = shared_memory() - self.shared
        if own > FAMILY + self.allowance - GROWTH:
            return f"the service and its processes grew by {own // MIB} MiB"
        return f"shared memory of the machine grew by {shared // MIB} MiB" if shared > SHARED else None
