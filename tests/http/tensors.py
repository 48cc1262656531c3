"""safetensors in a few lines: a file of named arrays. Standard library only."""
import json
import struct

MEDIA_TYPE = "application/x-safetensors"
KINDS = {"F64": "d", "F32": "f", "F16": "e", "I64": "q", "I32": "i", "U32": "I", "I8": "b", "U8": "B", "BOOL": "?"}
WIDTHS = {**{kind: struct.calcsize(letter) for kind, letter in KINDS.items()}, "BF16": 2}


def values_to_bytes(kind, values):
    """Values, or bytes as they are. BF16 rounds towards 0, so give it what it holds."""
    if isinstance(values, bytes):
        return values
    if kind == "BF16":
        return b"".join(struct.pack("<f", value)[2:] for value in values)
    return struct.pack(f"<{len(values)}{KINDS[kind]}", *values)


def pack(request, tensors, key="request", pad=True):
    """tensors: {name: (dtype, values)}; request: the JSON of the metadata."""
    header, data = {"__metadata__": {key: request if isinstance(request, str) else json.dumps(request)}}, b""
    for name, (kind, values) in tensors.items():
        piece = values_to_bytes(kind, values)
        header[name] = {"dtype": kind, "shape": [len(piece) // WIDTHS[kind]], "data_offsets": [len(data), len(data) + len(piece)]}
        data += piece
    text = json.dumps(header).encode()
    if pad:
        text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def unpack(body):
    """The metadata, and {name: values}."""
    length, = struct.unpack_from("<Q", body)
    header = json.loads(body[8:8 + length])
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            kind, (begin, end) = KINDS[entry["dtype"]], entry["data_offsets"]
            assert (8 + length + begin) % struct.calcsize(kind) == 0, "not aligned"
            tensors[name] = list(struct.unpack_from(f"<{entry['shape'][0]}{kind}", body, 8 + length + begin))
    assert 8 + length + max((entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"), default=0) == len(body)
    return header.get("__metadata__"), tensors


def flat(sequences, name):
    return [value for sequence in sequences for value in sequence[name]]


def offsets(sequences, name="logprobs"):
    found = [0]
    for sequence in sequences:
        found.append(found[-1] + len(sequence[name]))
    return found
