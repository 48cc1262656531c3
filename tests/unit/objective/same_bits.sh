#!/bin/sh
# The same numbers, bit for bit, from every compiler that is here, without and with optimisation, with and without
# AVX2, and with the vector and fused instructions of the build machine.
set -eu
root=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
first=
count=0

for compiler in gcc clang; do
    command -v "$compiler" >/dev/null || continue
    for flags in "-O0" "-O3" "-O3 -DOBJECTIVE_NO_CLONES" "-O3 -mavx2" "-O3 -march=native"; do
        # What is built for AVX2 runs only where the processor has it.
        case $flags in *avx2*) grep -q avx2 /proc/cpuinfo || continue ;; esac
        # shellcheck disable=SC2086
        "$compiler" -std=gnu17 -D_GNU_SOURCE -ffp-contract=off $flags -I"$root" -o "$work/bits" \
            "$root"/tests/unit/objective/same_bits.c "$root"/server/objective/*.c -lm
        bits=$("$work/bits")
        echo "$compiler $flags: $bits"
        first=${first:-$bits}
        [ "$bits" = "$first" ] || { echo "not the same bits" >&2; exit 1; }
        count=$((count + 1))
    done
done
[ "$count" -gt 0 ] || { echo "no compiler" >&2; exit 77; }
