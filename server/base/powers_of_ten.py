#!/usr/bin/env python3
"""Writes powers_of_ten.c (see powers_of_ten_private.h): powers_of_ten.py OUTPUT. Exact integers; nothing is measured or guessed."""
import sys

LEAST, MOST, BITS = -342, 324, 128


def significand(exponent):
    """The first 128 bits of 10^exponent, the highest one set; rounded down, or up where Lemire's proof asks for it."""
    power = 5 ** abs(exponent)
    if exponent >= 0:
        shift = BITS - power.bit_length()
        return power << shift if shift >= 0 else power >> -shift
    bits = (power - 1).bit_length() + BITS - 1
    return (1 << bits) // power + (exponent >= -27)


def main():
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        out.write('#include "server/base/powers_of_ten_private.h"\n\n')
        out.write("const struct power_of_ten powers_of_ten[POWERS_OF_TEN] = {\n")
        for exponent in range(LEAST, MOST + 1):
            value = significand(exponent)
            assert value.bit_length() == BITS and value & (1 << 64) - 1 != (1 << 64) - 1
            out.write(f"    {{UINT64_C(0x{value >> 64:016X}), UINT64_C(0x{value & (1 << 64) - 1:016X})}}, /* 1e{exponent} */\n")
        out.write("};\n\nconst uint64_t integer_powers_of_ten[INTEGER_POWERS_OF_TEN] = {\n")
        for exponent in range(20):
            out.write(f"    UINT64_C({10 ** exponent}),\n")
        out.write("};\n\nconst struct exponent_text exponent_texts[EXPONENT_TEXTS] = {\n")
        for exponent in range(-324, 309):
            out.write(f'    {{"e{exponent}", {len(f"e{exponent}")}}},\n')
        out.write("};\n")


main()
