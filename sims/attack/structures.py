"""Mutations that know the format: the file stays well formed on the outside, and lies inside.

Beside `mutate.py`, which damages bytes: here JSON and TOML values change their type, headers of
tensors and arrays claim other shapes, HDF5 objects are replaced and their checksums made good,
archives hold links and bombs, and pipes, folders and devices stand in the place of files.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shutil
import tarfile
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

HUGE = int("7" * 400)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**53 + 1, 2**63, -(2**63), HUGE, -HUGE, 1e308, 5e-324),
    *(float("nan"), float("inf"), -float("inf"), "", "x", "\0", "a\nb", "../../etc/passwd"),
    *("\ud800", "\ufeff", "1e999", "nan", "9" * 5000, [], {}, [[]], {"": {}}, [None] * 5, [0, "a"]),
    *({"low": 1, "high": 0}, list(range(100)), "digits", "2020-01-01", b"".hex(), 0.1, 3.5, -0.0),
)
DEEP = 100_000
MOST_LEVELS = 200


def any_value(random: Random) -> Any:  # noqa: ANN401
    """A value that a key rarely has."""
    return random.choice(VALUES)


def places(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401
    """The paths to all values of a JSON value."""
    yield here
    if isinstance(value, dict | list) and len(here) < MOST_LEVELS:
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*here, key))


def change_json(value: Any, random: Random) -> Any:  # noqa: ANN401
    """Replace, remove, repeat, rename or add values."""
    for _ in range(random.choice((1, 1, 2, 4))):
        paths = [path for path in places(value) if path]
        if not paths:
            return any_value(random)
        *way, last = random.choice(paths)
        holder = value
        for key in way:
            holder = holder[key]
        kind = random.randrange(6)
        if kind == 0:
            del holder[last]
        elif kind == 1 and isinstance(holder, dict):
            holder[random.choice(("", "x", "\0", "__class__", "a" * 9999))] = holder.pop(last)
        elif kind == 2 and isinstance(holder, list):
            holder *= random.choice((0, 2, 50))
        elif kind == 3 and isinstance(holder[last], int | float):
            scale = random.choice((-1, 0.5, 2, 1e6, 1e300))
            with suppress(OverflowError):
                holder[last] = holder[last] * scale
        else:
            holder[last] = any_value(random)
    return value


def disguise(text: bytes, random: Random) -> bytes:
    """Change the encoding of a text: marks, line ends, NUL bytes, other character sets."""
    place = random.randrange(len(text) + 1)
    return random.choice(
        (
            *(b"\xef\xbb\xbf" + text, text.replace(b"\n", b"\r\n"), text.replace(b"\n", b"\r")),
            text.decode(errors="replace").encode("utf-16"),
            text[:place]
            + random.choice((b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"\xc0\x80", b"\x1b["))
            + text[place:],
            *(b"", b"\n", b"\0" * 4096, text * 3, text.replace(b" ", b"\xc2\xa0")),
            text[:place] + b"[" * DEEP + text[place:],
            b'{"a":' * DEEP + b"1" + b"}" * DEEP,
        )
    )


def json_text(content: bytes, random: Random) -> bytes:
    """Change the values of a JSON file, or of a line of a JSONL file."""
    if random.random() < 0.2:
        return disguise(content, random)
    lines = content.split(b"\n") if content.count(b"\n{") else [content]
    place = random.randrange(len(lines))
    with suppress(ValueError):
        changed = json.dumps(change_json(json.loads(lines[place]), random))
        if random.random() < 0.1:
            changed = changed.replace(": ", ': 1, "a": ', 1)
        lines[place] = changed.encode(errors="surrogatepass")
    return b"\n".join(lines)


TOML = (
    *("1", "-1", "0", "0x7fffffffffffffffffff", "9" * 400, "1e400", "nan", "-inf", "true", '""'),
    *("[]", "[[]]", "{}", "{a = {b = 1}}", "[1, 'a', true]", "2020-01-01", "07:32:00", '"\\u0000"'),
    *("9999-12-31T23:59:60Z", "'''\n'''", "[" * 500 + "]" * 500, "{a=" * 300 + "1" + "}" * 300),
    *('"' + "x" * 100_000 + '"', "[" + "1," * 10_000 + "]", "1_000", "-0.0", '"../x"', "1.5"),
)


def toml_text(content: bytes, random: Random) -> bytes:
    """Replace values of a TOML file by those of other types; rename, repeat or drop keys."""
    if random.random() < 0.2:
        return disguise(content, random)
    lines = content.decode(errors="replace").split("\n")
    for _ in range(random.choice((1, 1, 2, 3))):
        keys = [k for k, line in enumerate(lines) if " = " in line or line.startswith("[")]
        if not keys:
            break
        k = random.choice(keys)
        key, equals, _ = lines[k].partition(" = ")
        kind = random.randrange(6)
        if not equals or kind == 0:
            lines[k] = random.choice(
                ("", lines[k] + "\n" + lines[k], "[[" + key.strip("[]") + "]]")
            )
        elif kind == 1:
            lines[k] = f"{random.choice(('x', 'a.b', key + '.c', '__init__'))} = 1"
        else:
            lines[k] = f"{key} = {random.choice(TOML)}"
    return "\n".join(lines).encode()


def extended(content: bytes, random: Random) -> bytes:
    """A profile that extends itself, a missing one, or one above its folder."""
    if random.random() < 0.7:
        return toml_text(content, random)
    name = random.choice(
        ("profile", "./profile.toml", "../x", "/dev/zero", "loihi1", "", "\\u0000")
    )
    return f'extends = "{name}"\n'.encode() + content


def tensors(content: bytes, random: Random) -> bytes:
    """Change the header of a safetensors file: shapes, types, offsets, metadata, its own size."""
    size = int.from_bytes(content[:8], "little")
    try:
        header, data = json.loads(content[8 : 8 + size]), content[8 + size :]
    except ValueError:
        return content
    kind = random.randrange(6)
    names = [name for name in header if name != "__metadata__"]
    entry = header[random.choice(names)]
    if kind == 0:
        entry["shape"] = random.choice(
            ([2**40, 2**40], [-1], [0], [], [2**63], [1] * 64, "x", None)
        )
    elif kind == 1:
        entry["data_offsets"] = random.choice(
            ([0, 2**62], [5, 3], [-8, 8], [0], [0, 0], "x", [0.5, 1])
        )
    elif kind == 2:
        entry["dtype"] = random.choice(
            ("F64", "BF16", "BOOL", "U8", "F8_E4M3", "x", 3, "C64", "I64")
        )
    elif kind == 3:
        inner = json.loads(header["__metadata__"]["neuro_eqprop"])
        if random.random() < 0.7:
            inner.pop("sha256", None)
        header["__metadata__"]["neuro_eqprop"] = json.dumps(change_json(inner, random))
    elif kind == 4:
        header = change_json(header, random)
    else:  # values that are not finite
        place = random.randrange(0, max(1, len(data) - 8), 4)
        data = data[:place] + random.choice((b"\0\0\xc0\x7f", b"\0\0\x80\x7f")) + data[place + 4 :]
        inner = json.loads(header["__metadata__"]["neuro_eqprop"])
        inner.pop("sha256", None)
        header["__metadata__"]["neuro_eqprop"] = json.dumps(inner)
    text = json.dumps(header).encode(errors="replace")
    text += b" " * (-len(text) % 8)
    stated = random.choice((len(text),) * 12 + (0, 2**63, 2**64 - 1, len(text) + 8, len(text) - 1))
    return stated.to_bytes(8, "little") + text + data


def rotate(x: int, k: int) -> int:
    """x rotated to the left by k of 32 bits."""
    return ((x << k) | (x >> (32 - k))) & 0xFFFFFFFF


def lookup3(data: bytes) -> int:
    """The checksum of HDF5's metadata (Jenkins' lookup3, hashlittle with start 0)."""
    mask = 0xFFFFFFFF
    a = b = c = (0xDEADBEEF + len(data)) & mask
    while len(data) > 12:
        x, y, z = (int.from_bytes(data[k : k + 4], "little") for k in (0, 4, 8))
        a, b, c = (a + x) & mask, (b + y) & mask, (c + z) & mask
        for shifts in ((4, 6, 8), (16, 19, 4)):
            a = ((a - c) & mask) ^ rotate(c, shifts[0])
            c = (c + b) & mask
            b = ((b - a) & mask) ^ rotate(a, shifts[1])
            a = (a + c) & mask
            c = ((c - b) & mask) ^ rotate(b, shifts[2])
            b = (b + a) & mask
        data = data[12:]
    if not data:
        return c
    tail = data.ljust(12, b"\0")
    x, y, z = (int.from_bytes(tail[k : k + 4], "little") for k in (0, 4, 8))
    a, b, c = (a + x) & mask, (b + y) & mask, (c + z) & mask
    c = ((c ^ b) - rotate(b, 14)) & mask
    a = ((a ^ c) - rotate(c, 11)) & mask
    b = ((b ^ a) - rotate(a, 25)) & mask
    c = ((c ^ b) - rotate(b, 16)) & mask
    a = ((a ^ c) - rotate(c, 4)) & mask
    b = ((b ^ a) - rotate(a, 14)) & mask
    return ((c ^ b) - rotate(b, 24)) & mask


SIGNS = re.compile(rb"TREE|SNOD|HEAP|GCOL|OHDR|OCHK|FRHP|FHDB|FHIB|BTHD|BTLF|EAHD|EAIB|FAHD|FADB")


def header_end(content: bytes, start: int) -> int | None:
    """Where the checksum of a version 2 object header lies."""
    flags = content[start + 5]
    place = start + 6 + (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0)
    width = 1 << (flags & 3)
    size = int.from_bytes(content[place : place + width], "little")
    end = place + width + size
    return end if end + 4 <= len(content) else None


def hdf5_bytes(content: bytes, random: Random) -> bytes:
    """Change bytes near signatures of HDF5; a valid checksum is put on object headers."""
    changed = bytearray(content)
    starts = [match.start() for match in SIGNS.finditer(content)]
    for _ in range(random.choice((1, 1, 2, 5))):
        start = random.choice(starts)
        end = header_end(content, start) if content[start : start + 4] == b"OHDR" else None
        place = random.randrange(start + 4, end or start + 64)
        width = random.choice((1, 1, 2, 4, 8))
        new = random.choice((random.randbytes(width), b"\xff" * width, b"\0" * width))
        changed[place : place + width] = new
        if end is not None and random.random() < 0.8:
            changed[end : end + 4] = lookup3(bytes(changed[start:end])).to_bytes(4, "little")
    if content[8] >= 2 and random.random() < 0.2:  # the superblock
        changed[random.randrange(9, 44)] = random.randrange(256)
        changed[44:48] = lookup3(bytes(changed[:44])).to_bytes(4, "little")
    return bytes(changed[: len(content)])


def hdf5_objects(content: bytes, random: Random) -> bytes:
    """Replace attributes and data of an HDF5 file by others, with h5py."""
    import h5py

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.h5"
        path.write_bytes(content)
        try:
            with h5py.File(path, "r+") as file:
                for _ in range(random.choice((1, 1, 2, 3))):
                    change_node(file, random)
        except Exception:  # the file was not made for changes
            return hdf5_bytes(content, random)
        return path.read_bytes()


def change_node(file: Any, random: Random) -> None:  # noqa: ANN401
    """Change one attribute, data set or link."""
    import h5py

    names: list[str] = []
    file.visit(names.append)
    name = random.choice(names)
    node = file[name]
    owner = random.choice((node, file))
    attributes = list(owner.attrs)
    value = random.choice(
        (
            *("", "x" * 50_000, "\0x", b"\xff\xfe", np.nan, np.inf, -1, 2**62, np.zeros((0, 3))),
            *(np.arange(1000), h5py.Empty("f"), True, np.array([b"a", b"b"]), 1.5, "[[[", "{}"),
            *(np.void(b"\x01\x02"), np.uint64(2**64 - 1), json.dumps({"a": HUGE}), "[" * DEEP),
        )
    )
    kind = random.randrange(7)
    if kind == 0 and attributes:
        del owner.attrs[random.choice(attributes)]
        return
    if kind in (1, 2) and attributes:
        chosen = random.choice(attributes)
        old = owner.attrs[chosen]
        if isinstance(old, str) and random.random() < 0.5:
            with suppress(ValueError):
                value = json.dumps(change_json(json.loads(old), random))
        owner.attrs[chosen] = value
        return
    shape = node.shape if isinstance(node, h5py.Dataset) else ()
    if kind == 3 and isinstance(node, h5py.Dataset) and node.size and node.dtype.kind in "iuf":
        filler = random.choice((np.nan, np.inf, -1, 2**31, 1e308, 255))
        data = node[()]
        with suppress(ValueError, OverflowError, TypeError):
            flat = np.atleast_1d(data).reshape(-1)
            flat[random.randrange(flat.size)] = filler
            node[...] = flat.reshape(data.shape)
        return
    del file[name]
    put_other(file, name, shape, random)


def put_other(file: Any, name: str, shape: tuple[int, ...], random: Random) -> None:  # noqa: ANN401
    """Put a group, a link or other data in the place of an object."""
    import h5py

    new = random.randrange(9)
    if new == 0:
        file.create_group(name)
    elif new == 1:
        file[name] = h5py.SoftLink(random.choice(("/" + name, "/", "/nowhere", "..")))
    elif new == 2:
        file[name] = h5py.ExternalLink(random.choice(("/etc/passwd", "x.h5", "/dev/zero")), "/")
    elif new == 3:
        claimed = random.choice(((2**40, 2**20), (2**62,), (0,), (1,) * 20, (*shape, 2)))
        file.create_dataset(name, claimed, "f8", chunks=tuple(min(n, 16) or 1 for n in claimed))
    elif new == 4:
        file[name] = np.zeros(shape, dtype=random.choice(("S4", "c16", "i1", "f2", [("a", "f8")])))
    elif new == 5:
        file.create_dataset(name, data="a text", dtype=h5py.string_dtype())
    elif new == 6:
        file.create_dataset(name, (4,), "f8", external=[("/dev/zero", 0, 32)])
    elif new == 7:
        layout = h5py.VirtualLayout((2,), "f8")
        layout[0:2] = h5py.VirtualSource("/etc/passwd", "x", (2,))
        file.create_virtual_dataset(name, layout)
    else:
        deep = file.create_group(name)
        for _ in range(200):
            deep = deep.create_group("a")


def hdf5(content: bytes, random: Random) -> bytes:
    """Change bytes or objects of an HDF5 file."""
    return random.choice((hdf5_bytes, hdf5_objects))(content, random)


def npz(content: bytes, random: Random) -> bytes:
    """Write arrays of other types, shapes and names, or members that lie about their size."""
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        arrays: dict[str, Any] = {name: file[name] for name in file.files}
    name, kind, buffer = random.choice(list(arrays)), random.randrange(8), io.BytesIO()
    if kind == 0:
        arrays[name] = random.choice((np.array([], "f8"), np.zeros(()), np.zeros((1,) * 30, "i1")))
    elif kind == 1:
        types = ("U3", "S2", "c16", "M8[s]", "f2", "?", "u8", [("a", "i4")], "f8", "V3", "i1")
        arrays[name] = np.zeros(arrays[name].shape, dtype=random.choice(types))
    elif kind == 2:
        changed = np.asarray(arrays[name], dtype="f8").copy()
        changed.flat[random.randrange(changed.size)] = random.choice(
            (np.nan, np.inf, 1e308, -1, 99)
        )
        arrays[name] = changed
    elif kind == 3:
        arrays[random.choice(("", "x", "y", "../x", "z" * 300, "x.npy"))] = arrays.pop(name)
    elif kind == 4:
        arrays[name] = arrays[name][: random.randrange(3)]
    np.savez(buffer, **arrays)
    made = buffer.getvalue()
    if kind == 5:  # a header that claims another shape or type
        old = re.search(
            rb"\{'descr': '[^']+', 'fortran_order': False, 'shape': \([^)]*\), \}", made
        )
        assert old is not None
        new = random.choice(
            (
                b"{'descr': '<f8', 'fortran_order': False, 'shape': (9999999999, 99), }",
                b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
                b"{'descr': '<f8', 'fortran_order': 1, 'shape': (-1,), }",
                b"{'descr': [('a', '<f8')] * 9, 'shape': 1}",
                b"{" * 60,
                b"__import__('os').abort()",
            )
        )[: len(old[0])].ljust(len(old[0]))
        made = made.replace(old[0], new, 1)
    if kind in (6, 7):
        made = zip_lies(made, random)
    return made


def zip_lies(content: bytes, random: Random) -> bytes:
    """Change fields of a zip file's directory: sizes, methods, flags, checksums, zip64 marks."""
    changed = bytearray(content)
    for sign, offsets in (
        (b"PK\1\2", (8, 10, 16, 20, 24, 28, 42)),
        (b"PK\3\4", (6, 8, 14, 18, 22, 26)),
    ):
        place = content.find(sign)
        if place >= 0 and random.random() < 0.7:
            start = place + random.choice(offsets)
            changed[start : start + 4] = random.choice(
                (b"\xff" * 4, b"\0" * 4, random.randbytes(4))
            )
    return bytes(changed[: len(content)])


def archive_zip(content: bytes, random: Random) -> bytes:
    """A zip file with bombs, repeated and hostile names, strange tables."""
    if random.random() < 0.3:
        return zip_lies(content, random)
    buffer = io.BytesIO()
    rows = (
        *("a good film\t1\n", "no tab\n", "\t\n", "a\t" + "9" * 400 + "\n", "\0\t1\n", '"a\t1\n'),
        *("a\tnan\n", "a\t-1\n", "a\t1\t2\n", "\r\n", "x" * 100_000 + "\t0\n", "\ufeffa\t1\n"),
    )
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for part in ("train.tsv", "dev.tsv"):
            if random.random() < 0.1:
                continue
            table = random.choice(("sentence\tlabel\n", "label\n", "", "\xff")) * random.choice(
                (1, 1, 2)
            )
            table += "".join(random.choice(rows) for _ in range(random.randrange(12)))
            if random.random() < 0.1:
                table += "\n" * 30_000_000
            name = random.choice((f"SST-2/{part}",) * 6 + (f"../{part}", f"/SST-2/{part}", part))
            archive.writestr(name, table.encode(random.choice(("utf-8", "utf-8", "utf-16"))))
    return buffer.getvalue()


def archive_tar(content: bytes, random: Random) -> bytes:
    """A gzipped tar file with links, devices, names above its folder, sizes that lie."""
    raw, buffer = gzip.decompress(content), io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(raw)) as old,
        tarfile.open(fileobj=buffer, mode="w") as new,
    ):
        for entry in old:
            data = old.extractfile(entry)
            kind = random.randrange(12)
            if kind == 0:
                entry.type = random.choice((tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE))
                entry.linkname, entry.size = random.choice(("/etc/passwd", "../..", entry.name)), 0
            elif kind == 1:
                entry.name = random.choice(("../../x", "/x", "", "a" * 500, "x\0y"))
            elif kind == 2:
                entry.size = random.choice((0, 1, entry.size - 1))
            elif kind == 3:
                entry.pax_headers = {"size": random.choice(("-1", "9" * 30, "x"))}
                entry.type = random.choice((tarfile.REGTYPE, tarfile.GNUTYPE_SPARSE))
            with suppress(ValueError, OSError, tarfile.TarError):
                new.addfile(entry, data)
    return packed(buffer.getvalue(), random)


def packed(raw: bytes, random: Random) -> bytes:
    """Data in gzip, sometimes cut, in two members, with a wrong checksum or with much behind."""
    made = gzip.compress(raw, 1)
    kind = random.randrange(8)
    if kind == 0:
        return made[: random.randrange(len(made))]
    if kind == 1:
        return made + made
    if kind == 2:
        return made[:-8] + random.randbytes(8)
    if kind == 3:
        return made + gzip.compress(bytes(2**26), 9)
    if kind == 4:
        return made + b"\0" * 100 + b"x"
    return made


def idx(content: bytes, random: Random) -> bytes:
    """An IDX file whose dimensions overflow, are zero, or do not fit its size."""
    sizes = random.choice(
        ((2**31, 2**31, 4), (2**32 - 1,) * 3, (0, 4, 4), (10, 4), (10, 0, 4), (10,), (1,) * 3)
    )
    kind = random.choice((8, 8, 9, 11, 12, 13, 14, 0, 255))
    count = random.choice((len(sizes), len(sizes), 255, 0))
    head = bytes((0, random.choice((0, 0, 1)), kind, count))
    return (
        head
        + b"".join(n.to_bytes(4, "big") for n in sizes)
        + content[16 : random.randrange(17, 200)]
    )


def idx_packed(content: bytes, random: Random) -> bytes:
    """The same in gzip."""
    raw = gzip.decompress(content)
    return packed(idx(raw, random) if random.random() < 0.6 else raw, random)


Mutate = Callable[[bytes, Random], bytes]
BY_SUFFIX: dict[str, Mutate] = {
    ".toml": toml_text,
    ".json": json_text,
    ".jsonl": json_text,
    ".safetensors": tensors,
    ".h5": hdf5,
    ".nir": hdf5,
    ".npz": npz,
    ".zip": archive_zip,
    ".tar.gz": archive_tar,
    "-ubyte": idx,
    "-ubyte.gz": idx_packed,
    "profile.toml": extended,
}


def mutate_structure(name: str, content: bytes, random: Random) -> bytes:
    """A file of that name with another structure."""
    fitting = [suffix for suffix in BY_SUFFIX if name.endswith(suffix)]
    return BY_SUFFIX[max(fitting, key=len)](content, random)


def clear(path: Path) -> None:
    """Remove what stands in the place of a file."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def grow(path: Path, content: bytes, over: threading.Event) -> None:
    """Append to a file until an event is set."""
    with path.open("ab") as file:
        while not over.is_set():
            file.write(content[-64:])
            file.flush()
            time.sleep(0.0005)


LINKS = {"device": "/dev/zero", "loop": "", "dangling link": "nowhere", "process": "/proc/self/mem"}
STRANGE_FILES = (*LINKS, "folder", "pipe", "missing", "empty", "grows")
"""What may stand in the place of a file."""


@contextmanager
def strange_file(kind: str, path: Path, content: bytes) -> Iterator[None]:
    """Put a folder, a pipe, a device, a link or a file that grows in the place of a file."""
    clear(path)
    over = threading.Event()
    thread = threading.Thread(target=grow, args=(path, content, over), daemon=True)
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind in LINKS:
        path.symlink_to(LINKS[kind] or path.name)
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "grows":
        path.write_bytes(content)
        thread.start()
    try:
        yield
    finally:
        over.set()
        if kind == "grows":
            thread.join()
        clear(path)
