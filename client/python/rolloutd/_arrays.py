"""Arrays on the wire: base64 in JSON, safetensors. numpy is imported where an array is met; torch never is."""
from __future__ import annotations

import base64
import json
import struct
from typing import Any, Dict, Mapping, Sequence, Tuple

from ._link import encode

TENSORS = "application/x-safetensors"
PACKED = {"_u32": "<u4", "_f32": "<f4", "_f64": "<f8", "_u8": "u1"}
KINDS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U32": "<u4", "I8": "i1", "U8": "u1", "BOOL": "?"}
NAMES = {"f8": "F64", "f4": "F32", "f2": "F16", "i8": "I64", "i4": "I32", "u4": "U32", "i1": "I8", "u1": "U8", "b1": "BOOL"}


def unpacked(value: Any) -> Any:
    """`x_f32` and its like, everywhere in a reply, become numpy arrays named `x`; ids int64, as an embedding wants them."""
    if isinstance(value, list):
        return [unpacked(one) for one in value]
    if not isinstance(value, dict):
        return value
    result = {}
    for name, one in value.items():
        stem, mark, suffix = name.rpartition("_")
        kind = PACKED.get(mark + suffix) if isinstance(one, str) else None
        if kind:
            result[stem] = array_of(base64.b64decode(one), kind)
        else:
            result[name] = unpacked(one)
    return result


def array_of(content: Any, kind: str, count: int = -1, offset: int = 0) -> Any:
    """A copy that may be written to; ids as int64."""
    import numpy

    values = numpy.frombuffer(content, kind, count, offset)
    return values.astype(numpy.int64 if kind == "<u4" else kind)


def is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def as_numpy(value: Any) -> Any:
    """Of a tensor its values, without its graph; bfloat16, which numpy has not, as float32 (exact)."""
    import numpy

    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = (value.float() if str(value.dtype) == "torch.bfloat16" else value).numpy()
    return numpy.ascontiguousarray(value)


def has_arrays(sequences: Sequence[Mapping[str, Any]]) -> bool:
    return any(is_array(value) for sequence in sequences for value in sequence.values())


def objective_body(body: Mapping[str, Any]) -> memoryview:
    """A request as safetensors: the arrays of all sequences end to end, the rest as JSON. ValueError where they do not fit."""
    import numpy

    sequences = body["sequences"]
    names = sorted({name for sequence in sequences for name, value in sequence.items() if is_array(value)})
    lengths = [len(sequence.get(names[0], ())) for sequence in sequences]
    tensors = {}
    for name in names:
        tensors[name] = pieces = [as_numpy(sequence.get(name)) if is_array(sequence.get(name)) else None for sequence in sequences]
        for index, piece in enumerate(pieces):
            if piece is None or len(piece) != lengths[index]:
                raise ValueError(f"sequences[{index}].{name}: an array as long as its {names[0]} is needed, because others have one")
    tensors["cu_seqlens"] = [numpy.cumsum([0, *lengths]).astype(numpy.int64)]
    rest = [{name: value for name, value in sequence.items() if name not in tensors} for sequence in sequences]
    return pack({**body, "sequences": rest}, tensors)


def pack(request: Mapping[str, Any], tensors: Mapping[str, Sequence[Any]]) -> memoryview:
    """tensors: the pieces of each, which are written end to end, and copied only here. The widest first: all stay aligned."""
    import numpy

    kinds = {name: numpy.result_type(*{piece.dtype for piece in pieces}).newbyteorder("<") for name, pieces in tensors.items()}
    header: Dict[str, Any] = {"__metadata__": {"request": encode(request).decode()}}
    end = 0
    for name in sorted(tensors, key=lambda name: -int(kinds[name].itemsize)):
        count, key = sum(map(len, tensors[name])), f"{kinds[name].kind}{kinds[name].itemsize}"
        if key not in NAMES:
            raise ValueError(f"{name}: {kinds[name]} cannot be sent")
        begin, end = end, end + count * kinds[name].itemsize
        header[name] = {"dtype": NAMES[key], "shape": [count], "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    head = struct.pack("<Q", len(text)) + text
    whole = numpy.empty(len(head) + end, numpy.uint8)
    whole[:len(head)] = numpy.frombuffer(head, numpy.uint8)
    for name, pieces in tensors.items():
        begin, stop = (len(head) + offset for offset in header[name]["data_offsets"])
        numpy.concatenate(pieces, out=whole[begin:stop].view(kinds[name]))
    return whole.data


def objective_reply(content: bytes) -> Dict[str, Any]:
    """The reply's JSON; the arrays of each sequence stand in it as numpy's."""
    reply, flat = read(content)
    cuts = flat.pop("cu_seqlens")
    for name, values in flat.items():
        for sequence, begin, end in zip(reply["sequences"], cuts, cuts[1:]):
            sequence[name] = values[begin:end]
    return reply


def read(content: bytes) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """(the JSON, flat arrays by name)"""
    length, = struct.unpack_from("<Q", content)
    header = json.loads(content[8:8 + length])
    reply: Dict[str, Any] = json.loads(header.pop("__metadata__")["reply"])
    return reply, {name: array_of(content, KINDS[entry["dtype"]], entry["shape"][0], 8 + length + entry["data_offsets"][0])
                   for name, entry in header.items()}
