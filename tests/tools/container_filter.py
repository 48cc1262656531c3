#!/usr/bin/env python3
"""container_filter.py COMMAND…   runs a command behind what Docker's default profile forbids to a container without capabilities:
namespaces, mounts, clone3 (which "does not exist"), tracing, keys. x86_64 and aarch64."""
import ctypes
import os
import platform
import struct
import sys

EPERM, ENOSYS = 1, 38
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
LOAD, EQUAL, SET, RETURN = 0x20, 0x15, 0x45, 0x06
NEW = 0x7E020000  # CLONE_NEW*: the flags that make namespaces
NUMBERS = {
    "x86_64": {"clone": 56, "clone3": 435, "unshare": 272, "setns": 308, "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "ptrace": 101,
               "add_key": 248, "request_key": 249, "keyctl": 250, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "sethostname": 170},
    "aarch64": {"clone": 220, "clone3": 435, "unshare": 97, "setns": 268, "mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51, "ptrace": 117,
                "add_key": 217, "request_key": 218, "keyctl": 219, "bpf": 280, "perf_event_open": 241, "userfaultfd": 282, "sethostname": 161}}
MOUNTS = range(428, 434)  # open_tree, move_mount, fsopen, fsconfig, fsmount, fspick


def instruction(code, value, yes=0, no=0):
    return struct.pack("=HBBI", code, yes, no, value)


def program():
    numbers = dict(NUMBERS[platform.machine()])
    clone, clone3 = numbers.pop("clone"), numbers.pop("clone3")
    lines = [instruction(LOAD, 0)]
    lines += [instruction(EQUAL, clone3, 0, 1), instruction(RETURN, ERRNO | ENOSYS)]
    for number in (*numbers.values(), *MOUNTS):
        lines += [instruction(EQUAL, number, 0, 1), instruction(RETURN, ERRNO | EPERM)]
    lines += [instruction(EQUAL, clone, 0, 3), instruction(LOAD, 16), instruction(SET, NEW, 0, 1), instruction(RETURN, ERRNO | EPERM)]
    return b"".join([*lines, instruction(RETURN, ALLOW)])


def main():
    code = program()
    library = ctypes.CDLL(None, use_errno=True)
    held = ctypes.create_string_buffer(code)
    head = ctypes.create_string_buffer(struct.pack("HP", len(code) // 8, ctypes.addressof(held)))
    if library.prctl(38, 1, 0, 0, 0) or library.prctl(22, 2, head, 0, 0):
        sys.exit(f"container_filter: {os.strerror(ctypes.get_errno())}")
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
