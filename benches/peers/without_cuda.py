"""Lets PyPI's torch for Linux run without the gigabytes of CUDA packages that it asks for.

    python without_cuda.py FOLDER      FOLDER is the installed package, .../site-packages/torch

The wheels of torch on PyPI are linked against CUDA's libraries, and cannot be imported where these are missing, even if nothing
but the processor is to be used. So each missing library gets a stand-in beside torch's own: every function that torch knows of
it returns cudaErrorNoDevice. torch then finds no device. `run` calls this after the installation; it needs a C compiler and
readelf, as the builds of boscage do (package binutils).
"""

import pathlib
import re
import subprocess
import sys
import tempfile

#: cudaErrorNoDevice.
NO_DEVICE = 100


def readelf(*arguments):
    return subprocess.run(["readelf", "-W", *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def main(folder):
    own = folder / "lib"
    libraries = sorted(own.glob("*.so*"))
    present = {library.name for library in libraries}
    missing, wanted, known = set(), set(), set()
    for library in libraries:
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d", str(library)))
        missing |= {name for name in needed if name not in present and name.startswith(("libcu", "libnccl", "libnv"))}
        for line in readelf("--dyn-syms", str(library)).splitlines():
            fields = line.split()
            if len(fields) < 8 or fields[4] == "LOCAL":
                continue
            (wanted if fields[6] == "UND" else known).add(fields[7])
    known = {name.split("@")[0] for name in known}
    # A function of a library with versions is looked for there, any other in all libraries.
    loose = {name for name in wanted if "@" not in name and name not in known}
    loose = {name for name in loose if re.match(r"(cu|nccl|nv)", name)}
    for soname in sorted(missing):
        versions = {}
        for name in wanted:
            symbol, _, version = name.partition("@")
            # The library of the version is not in the table of symbols; but its name is the version, except for one.
            if version == soname or (version == "NVSHMEM" and soname.startswith("libnvshmem")):
                versions.setdefault(version, set()).add(symbol)
        symbols = set().union(*versions.values(), loose)
        with tempfile.TemporaryDirectory() as place:
            source, script = pathlib.Path(place, "stand_in.c"), pathlib.Path(place, "versions")
            source.write_text("".join(f"int {symbol}(void) {{ return {NO_DEVICE}; }}\n" for symbol in sorted(symbols)))
            blocks = [f"{version} {{ {'; '.join(sorted(of))}; }};" for version, of in sorted(versions.items())]
            script.write_text("\n".join(blocks) + "\n")
            command = ["cc", "-shared", "-fPIC", "-w", f"-Wl,-soname,{soname}", "-o", str(own / soname), str(source)]
            if versions:
                command.insert(1, f"-Wl,--version-script={script}")
            subprocess.run(command, check=True)
    print(f"{len(missing)} stand-ins for libraries of CUDA")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
