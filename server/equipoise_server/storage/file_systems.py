"""Finds how a file is mounted on Linux; on other systems it is unknown."""

from __future__ import annotations

import re
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")

# File systems that several machines share: file locks and shared mappings do not work there as they do locally.
SHARED = frozenset(
    """
    9p acfs afs beegfs ceph cifs coda gfs gfs2 glusterfs gpfs kafs lustre ncpfs nfs nfs4 ocfs2 orangefs panfs smb3
    smbfs vboxsf vmhgfs fuse.ceph-fuse fuse.curlftpfs fuse.davfs fuse.gcsfuse fuse.glusterfs fuse.goofys
    fuse.juicefs fuse.moosefs fuse.mountpoint-s3 fuse.rclone fuse.s3fs fuse.seaweedfs fuse.smbnetfs fuse.sshfs
    fuse.vmhgfs-fuse
    """.split()  # noqa: SIM905
)


def file_system(path: Path) -> str | None:
    """Return the kernel's name for the file system of an absolute path, which need not exist; None if unknown."""
    file_system, longest = None, -1
    for point, kind in _mounts():
        # Of several mounts on one directory the last one covers the others.
        if path.is_relative_to(point) and len(point.parts) >= longest:
            file_system, longest = kind, len(point.parts)
    return file_system


def mounted_alone(path: Path) -> bool:
    """Return whether something is mounted on exactly this absolute path: it may have other names elsewhere."""
    return any(path == point for point, _ in _mounts())


def _mounts() -> list[tuple[Path, str]]:
    """Return each mount point with the name of its file system, as they were mounted; none if unknown."""
    try:
        lines = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return []
    # proc(5): the fields of the mount, a lone hyphen, the fields of the file system.
    parts = (line.partition(" - ") for line in lines)
    return [(Path(_unescaped(mount.split(" ")[4])), kind.split(" ")[0]) for mount, _, kind in parts]


def _unescaped(text: str) -> str:
    """Return the text with octal escapes replaced, as which spaces, tabs, newlines and backslashes are written."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
