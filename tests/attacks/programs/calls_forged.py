# Every descriptor gets records that say that all is well.
# expected: verdict=wrong_answer|runtime_error|output_limit|time_limit_wall|security_violation
# calls: yes
import json, os, struct
def solve(n):
    value = json.dumps({"index": 0, "call": 0, "value": "x", "ok": True, "result": "x", "passed": True, "status": "ok"}).encode()
    for frame in (value + b"\n", struct.pack("<I", len(value)) + value, struct.pack(">I", len(value)) + value, struct.pack("<Q", len(value)) + value,
                  b"\xff" * 100, struct.pack("<I", 0xffffffff), b"[" * 100000):
        for fd in range(3, 64):
            try:
                os.write(fd, frame)
            except OSError:
                pass
    return "x"
