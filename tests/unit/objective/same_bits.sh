#!/bin/sh
# The same numbers, bit for bit, from every compiler that is here, without and with optimisation, with vectors of 16, of
# at most 32 and of at most 64 bytes (SSE2, AVX2, AVX-512, as far as the processor has them), and with the vector and
# fused instructions of the build machine.
set -eu
root=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
first=
count=0

for compiler in gcc clang; do
    command -v "$compiler" >/dev/null || continue
    for flags in "-O0" "-O3" "-O3 -DOBJECTIVE_NO_CLONES -DOBJECTIVE_WIDEST=16" "-O2 -DOBJECTIVE_WIDEST=32" \
        "-O3 -mavx2 -DOBJECTIVE_WIDEST=16" "-O3 -march=native"; do
        # A build for AVX2 runs only where the processor has it.
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
