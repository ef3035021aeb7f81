"""vmlinux.py VMLINUZ VMLINUX: unpacks the kernel out of its self-extracting form."""
import lzma
import subprocess
import sys
import zlib


def command(*words):
    return lambda data: subprocess.run(words, input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


packed = open(sys.argv[1], "rb").read()
for magic, unpack in (
    (b"\xfd7zXZ\0", lambda data: lzma.LZMADecompressor().decompress(data)),
    (b"\x1f\x8b\x08", lambda data: zlib.decompressobj(31).decompress(data)),
    (b"\x28\xb5\x2f\xfd", command("zstd", "-dc")),
    (b"\x02\x21\x4c\x18", command("lz4", "-dc")),
):
    place = packed.find(magic)
    while place >= 0:  # the magic may stand there by chance
        try:
            kernel = unpack(packed[place:])
        except (lzma.LZMAError, zlib.error, OSError):
            kernel = b""
        if kernel.startswith(b"\x7fELF"):
            open(sys.argv[2], "wb").write(kernel)
            sys.exit(0)
        place = packed.find(magic, place + 1)
sys.exit(f"{sys.argv[1]}: no kernel found in it (packed by xz, gzip, zstd or lz4?)")
