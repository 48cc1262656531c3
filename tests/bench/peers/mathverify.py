"""Math-Verify for math.py: lines {"id","gold","completion"} in, lines {"id","paid","error","seconds","cpu"} out. The argument is its hard limit in seconds."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "nightly", "mathverify"))

from peer import Peer  # noqa: E402


def main():
    peer = Peer("documented", float(sys.argv[1]))
    for line in sys.stdin:
        case = json.loads(line)
        paid, error, seconds, cpu = peer.ask(case["gold"], case["completion"])
        print(json.dumps({"id": case["id"], "paid": paid, "error": error, "seconds": seconds, "cpu": cpu}))
    peer.stop()


if __name__ == "__main__":
    main()
