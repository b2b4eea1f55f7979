"""Mutations of files: damage as disks make it, and changes as people with bad intentions do."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

Mutator = Callable[[bytes, Random], bytes]

VALUE = re.compile(rb"-?\d+(\.\d+)?(e[+-]?\d+)?|true|false|null|\"[^\"\n]{0,40}\"")
STRANGE = (
    *(b"-1", b"0", b"1e999", b"NaN", b"null", b"true", b'"x"', b"[]", b"{}", b"inf", b"nan"),
    *(b"9" * 400, b"9" * 19, b"-" + b"9" * 30, b"1e-400", b"0x10", b"3.5", b'"\\u0000"'),
)


def flip_bits(content: bytes, random: Random) -> bytes:
    """Flip one to eight bits."""
    changed = bytearray(content)
    for _ in range(random.randint(1, 8)):
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def set_start(content: bytes, random: Random) -> bytes:
    """Change a byte among the first hundred, where headers are."""
    changed = bytearray(content)
    changed[random.randrange(min(100, len(changed)))] = random.randrange(256)
    return bytes(changed)


def cut(content: bytes, random: Random) -> bytes:
    """Cut the file short."""
    return content[: random.randrange(len(content))]


def extend(content: bytes, random: Random) -> bytes:
    """Append bytes."""
    return content + random.randbytes(random.randint(1, 5000))


def blank(content: bytes, random: Random) -> bytes:
    """Overwrite a block by zeros or by ones."""
    start = random.randrange(len(content))
    size = random.randint(1, 1024)
    filler = random.choice((b"\0", b"\xff"))
    return (content[:start] + filler * size + content[start + size :])[: len(content)]


def move_block(content: bytes, random: Random) -> bytes:
    """Copy a block to another place."""
    size = random.randint(1, max(1, len(content) // 4))
    source, target = (random.randrange(len(content)) for _ in range(2))
    block = content[source : source + size]
    return content[:target] + block + content[target + len(block) :]


def change_number(content: bytes, random: Random) -> bytes:
    """Replace a number or a word in the text by a strange value."""
    found = list(
        re.finditer(rb"-?\d+(\.\d+)?(e[+-]?\d+)?|true|false|null|\"[^\"\n]{0,40}\"", content)
    )
    if not found:
        return flip_bits(content, random)
    place = random.choice(found)
    return content[: place.start()] + random.choice(STRANGE) + content[place.end() :]


def drop_lines(content: bytes, random: Random) -> bytes:
    """Remove, repeat or swap lines."""
    lines = content.split(b"\n")
    start = random.randrange(len(lines))
    if random.random() < 0.5:
        del lines[start : start + random.randint(1, 3)]
    else:
        lines.insert(random.randrange(len(lines)), lines[start])
    return b"\n".join(lines)


def nest(content: bytes, random: Random) -> bytes:
    """Insert brackets that are nested deeply."""
    place = random.randrange(len(content))
    depth = random.choice((10, 1000, 200_000))
    return content[:place] + random.choice((b"[", b'{"a":')) * depth + content[place:]


MUTATORS: tuple[Mutator, ...] = (
    *(flip_bits, flip_bits, set_start, cut, extend, blank, move_block),
    *(change_number, change_number, drop_lines, nest),
)


def mutate(content: bytes, random: Random) -> bytes:
    """One to three mutations of a file."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        content = random.choice(MUTATORS)(content or b"\0", random)
    return content
