# SPDX-License-Identifier: Apache-2.0
"""What the library says went wrong, as exceptions that Python programs expect."""

from __future__ import annotations

import errno
from typing import Any

# What programs that look at the number of an OSError expect, by reason or code.
_NUMBERS = {
    "storage/no-space": errno.ENOSPC,
    "fs/too-many-files": errno.EMFILE,
    "fs/file-too-large": errno.EFBIG,
    "load/chunk-missing": errno.ENOENT,
    "safetensors-index/missing-part": errno.ENOENT,
    "fs/not-a-directory": errno.ENOTDIR,
    "not_found": errno.ENOENT,
    "already_exists": errno.EEXIST,
    "permission_denied": errno.EACCES,
    "deadline_exceeded": errno.ETIMEDOUT,
}


class Error(Exception):
    """Base of everything that cairn raises about checkpoints.

    `code` is the kind ("not_found", "corrupt", ...), `reason` a token that never changes
    ("load/checksum"), `where` the place ("leaf params.w: chunk 0.1"); the text is for people.
    Beside this class each exception is also the built-in one that its kind or reason suggests; an
    OSError has its `errno`.

        >>> import cairn, tempfile
        >>> try:
        ...     cairn.load(tempfile.mkdtemp() + "/nothing")
        ... except FileNotFoundError as error:
        ...     print(error.code, error.reason, errno.errorcode[error.errno])
        not_found checkpoint/not-found ENOENT
    """

    code: str
    reason: str
    where: str

    def __init__(self, message: str, code: str = "internal", reason: str = "", where: str = ""):
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.where = where
        system: Any = self
        if isinstance(system, OSError):
            system.errno = _NUMBERS.get(reason) or _NUMBERS.get(code)

    def __str__(self) -> str:
        return f"{self.args[0]} [{self.reason}]" if self.reason else str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        return error_of, (self.code, self.reason, self.where, self.args[0])


class InvalidArgumentError(Error, ValueError):
    """The call makes no sense as it is."""


class NotFoundError(Error, FileNotFoundError):
    """There is no such checkpoint."""


class MissingKeyError(Error, KeyError):
    """The checkpoint, or what the caller gave for its leaves, has no such key."""


class MissingPrefixError(NotFoundError, ValueError):
    """The checkpoint has no tree of that name."""


class AlreadyExistsError(Error, FileExistsError):
    """Something is there already."""


class MismatchError(Error, ValueError):
    """Something has to change first: another structure, another owner, not a checkpoint."""


class NotDirectoryError(MismatchError, NotADirectoryError):
    """A file stands where a directory is needed."""


class CorruptError(Error, ValueError):
    """These bytes are not what was saved."""


class MissingDataError(CorruptError, FileNotFoundError):
    """Files of an array are gone."""


class UnavailableError(Error, ConnectionError):
    """Worth another try."""


class DeadlineError(Error, TimeoutError):
    """Somebody was too late; the text says who."""


class CancelledError(Error, RuntimeError):
    """Somebody gave up; the text says who."""


class PermissionDeniedError(Error, PermissionError):
    """Not allowed."""


class ResourceError(Error, OSError):
    """The disk, a quota or the memory is full."""


class UnsupportedError(Error, NotImplementedError):
    """Not in this build, or not in this store."""


_BY_REASON: dict[str, type[Error]] = {
    "load/key-missing": MissingKeyError,
    "load/missing-array": MissingKeyError,
    "load/unnamed-leaves": MissingKeyError,
    "load/chunk-missing": MissingDataError,
    "safetensors-index/missing-part": MissingDataError,
    "load/prefix-missing": MissingPrefixError,
    "fs/file-too-large": ResourceError,
    "fs/not-a-directory": NotDirectoryError,
}
_BY_CODE: dict[str, type[Error]] = {
    "invalid_argument": InvalidArgumentError,
    "not_found": NotFoundError,
    "already_exists": AlreadyExistsError,
    "failed_precondition": MismatchError,
    "corrupt": CorruptError,
    "unavailable": UnavailableError,
    "deadline_exceeded": DeadlineError,
    "cancelled": CancelledError,
    "permission_denied": PermissionDeniedError,
    "resource_exhausted": ResourceError,
    "unimplemented": UnsupportedError,
}


# Programs look for the beginning of these texts: what was going on comes last.
_PLAIN = ("load/missing-array", "load/shape-mismatch")


def error_of(code: str, reason: str, where: str, message: str) -> Error:
    if reason in _PLAIN and where and message.startswith(f"{where}: "):
        message = f"{message.removeprefix(f'{where}: ')} ({where})"
    kind = _BY_REASON.get(reason) or _BY_CODE.get(code, Error)
    return kind(message, code, reason, where)
