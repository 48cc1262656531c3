# Values as bytes, between a program and who asks it: plain data by value, whatever a class of the program says of itself.
#
#   n t f  i-12;  x-ff;  d0.5;          None, True, False, whole numbers (x: hexadecimal, beyond 64 bits), floats
#   s3:abc  b2:..  a2:..                text (UTF-8), bytes, bytearray, with the number of bytes
#   L2:..  T2:..  S2:..  Z2:..  Q2:..   list, tuple, set, frozenset, deque, with the number of elements
#   M1:kv                               dict: keys and values in turn
#   c d..d..   D s..   F i..i..         complex, Decimal, Fraction
#   R i..i..i..   G s..T..              range, of the module datetime: the class and its arguments
#   B s..                               class of Python's own, or of the test
#   r0;                                 object of a class that both sides have
#   N s..vM..   E s..v                  the same for classes of plain data, with their attributes, and for members of an Enum
#   h0;  k0;  j0;                       object of the program, function and iterator of the test: they stay where they are
import builtins
import os
import sys

DEPTH = 200
TAGS = {list: b"L", tuple: b"T", set: b"S", frozenset: b"Z"}


def slots_of(kind):
    """Names of attributes that objects of a class have beside their __dict__."""
    found = [vars(one).get("__slots__", ()) for one in type.mro(kind)]
    return {name for names in found for name in ([names] if isinstance(names, str) else names)} - {"__dict__", "__weakref__"}


def attributes_of(value):
    slots = {name: getattr(value, name) for name in slots_of(type(value)) if hasattr(value, name)}
    return {**getattr(value, "__dict__", {}), **slots}


def is_method(kind, name):
    found = next((vars(one)[name] for one in type.mro(kind) if name in vars(one)), None)
    return isinstance(found, (type(slots_of), classmethod, staticmethod))


def set_attributes(value, attributes):
    """But for methods of its class: a program's own in its place would be asked whether the object is what is expected."""
    slots = slots_of(type(value))
    for name, one in attributes.items():
        if is_method(type(value), name):
            continue
        if name in slots:
            object.__setattr__(value, name, one)
        else:
            vars(value)[name] = one


class Encoder:
    """shared: {class: name} of objects that go by value; held: ids of objects that stay here though they are made of plain data;
    other(value) gives the bytes of anything else."""

    def __init__(self, other):
        self.shared, self.held, self.other = {}, set(), other
        self.kinds = {bool: self.put_bool, int: self.put_int, float: self.put_float, str: self.put_str,
                      bytes: self.put_bytes, bytearray: self.put_bytearray, complex: self.put_complex, dict: self.put_dict,
                      range: self.put_range, type: self.put_type}
        self.kinds.update((kind, self.put_many) for kind in TAGS)
        self.later = {"deque": self.put_many, "Decimal": self.put_decimal, "Fraction": self.put_fraction,
                      "ndarray": self.put_numpy, "generic": self.put_numpy}
        self.later.update((kind, self.put_time) for kind in ("datetime", "date", "time", "timedelta"))

    def plain(self, value):
        self.out, self.objects, self.seen = bytearray(), [], {}
        self.put(value, 0)
        return bytes(self.out)

    def message(self, value):
        root, names, count = self.plain(value), bytearray(), 0
        self.out = bytearray()
        while count < len(self.objects):
            self.put_dict(attributes_of(self.objects[count]), 0)
            count += 1
        bodies, self.out = self.out, names
        for one in self.objects:
            self.put_str(self.shared[type(one)])
        return b"%d:" % count + names + bodies + root

    def put(self, value, depth):
        if value is None:
            self.out += b"n"
            return
        if depth > DEPTH:
            raise RecursionError("a value is nested too deeply")
        put = self.way_of(value)
        if type(value) in self.shared:
            self.put_shared(value, put, depth)
        elif put and id(value) not in self.held:
            put(value, depth)
        else:
            self.out += self.other(value)

    def way_of(self, value):
        """How plain data is put; None: it is none."""
        for kind in type.mro(type(value)):
            put = self.kinds.get(kind) or kind.__module__ in MODULES and self.later.get(kind.__name__)
            if put:
                return put
        return None

    def put_shared(self, value, put, depth):
        if hasattr(type(value), "__members__"):
            self.out += b"E"
            self.put_str(self.shared[type(value)])
            self.put(value._value_, depth + 1)
        elif put:
            self.out += b"N"
            self.put_str(self.shared[type(value)])
            put(value, depth)
            self.put_dict(attributes_of(value), depth + 1)
        else:
            self.put_object(value)

    def put_object(self, value):
        if id(value) not in self.seen:
            self.seen[id(value)] = len(self.objects)
            self.objects.append(value)
        self.out += b"r%d;" % self.seen[id(value)]

    def put_type(self, value, depth=0):
        name = self.shared.get(value) or type.__dict__["__name__"].__get__(value)
        if value not in self.shared and vars(builtins).get(name) is not value:
            self.out += self.other(value)
            return
        self.out += b"B"
        self.put_str(name)

    def put_bool(self, value, depth=0):
        self.out += b"t" if value else b"f"

    def put_int(self, value, depth=0):
        value = int.__add__(value, 0)
        self.out += b"i%d;" % value if -1 << 63 <= value < 1 << 63 else b"x%x;" % value

    def put_float(self, value, depth=0):
        self.out += b"d%s;" % float.__repr__(value).encode()

    def put_str(self, value, depth=0):
        data = str.encode(value, "utf-8", "surrogatepass")
        self.out += b"s%d:" % len(data) + data

    def put_bytes(self, value, depth=0, tag=b"b"):
        data = bytes(memoryview(value))
        self.out += tag + b"%d:" % len(data) + data

    def put_bytearray(self, value, depth=0):
        self.put_bytes(value, 0, b"a")

    def put_complex(self, value, depth=0):
        self.out += b"c"
        self.put_float(value.real)
        self.put_float(value.imag)

    def put_decimal(self, value, depth=0):
        self.out += b"D"
        self.put_str(str(value))

    def put_fraction(self, value, depth=0):
        self.out += b"F"
        self.put_int(value.numerator)
        self.put_int(value.denominator)

    def put_range(self, value, depth=0):
        self.out += b"R"
        for one in (value.start, value.stop, value.step):
            self.put_int(one)

    def put_time(self, value, depth):
        kind, arguments = value.__reduce__()
        self.out += b"G"
        self.put_str(kind.__name__)
        self.put(arguments, depth + 1)

    def put_numpy(self, value, depth):
        self.put(value.tolist(), depth + 1)

    def put_many(self, value, depth):
        kind = next((one for one in type.mro(type(value)) if one in TAGS), None)
        elements = list(kind.__iter__(value) if kind else value)
        self.out += TAGS.get(kind, b"Q") + b"%d:" % len(elements)
        for one in elements:
            self.put(one, depth + 1)

    def put_dict(self, value, depth=0):
        pairs = list(dict.items(value))
        self.out += b"M%d:" % len(pairs)
        for pair in pairs:
            self.put(pair[0], depth + 1)
            self.put(pair[1], depth + 1)


MODULES = ("collections", "decimal", "fractions", "numpy", "datetime")
