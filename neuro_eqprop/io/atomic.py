"""Atomic file writes: a file appears complete or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4


def write_bytes(path: Path, content: bytes) -> None:
    """Write bytes atomically: to a temporary name beside `path`, then rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid4().hex[:8]}")
    # Opened inside the try: an interrupt right after the file is made must not leave it behind.
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text(path: Path, content: str) -> None:
    """Write text (UTF-8) atomically."""
    write_bytes(path, content.encode())
