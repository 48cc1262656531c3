# 150 MiB of 256 are there.
# expected: verdict=pass
# stdout: 157286400\n
block = bytearray(150 << 20)
block[::4096] = b'x' * len(block[::4096])
print(len(block))
