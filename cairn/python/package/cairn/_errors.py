# SPDX-License-Identifier: Apache-2.0
"""Errors of the library as exceptions."""

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
    """Base class of all errors about checkpoints.

    `code` is the kind ("not_found", "corrupt", ...), `reason` a token that never changes
    ("load/checksum"), `where` the place ("leaf params.w: chunk 0.1"); the text is for people. Each
    exception is also an instance of the matching built-in exception; an OSError has its `errno`.

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
    """The arguments are invalid."""


class NotFoundError(Error, FileNotFoundError):
    """There is no such checkpoint."""


class MissingKeyError(Error, KeyError):
    """The checkpoint, or what the caller gave for its leaves, has no such key."""


class MissingPrefixError(NotFoundError, ValueError):
    """The checkpoint has no tree of that name."""


class AlreadyExistsError(Error, FileExistsError):
    """Something exists already."""


class MismatchError(Error, ValueError):
    """The state does not fit the call: another structure, another owner, not a checkpoint."""


class NotDirectoryError(MismatchError, NotADirectoryError):
    """There is a file instead of a directory."""


class CorruptError(Error, ValueError):
    """These bytes are not what was saved."""


class MissingDataError(CorruptError, FileNotFoundError):
    """Files of an array are missing."""


class UnavailableError(Error, ConnectionError):
    """A temporary failure: retry."""


class DeadlineError(Error, TimeoutError):
    """A time limit passed; the text says who was late."""


class CancelledError(Error, RuntimeError):
    """A participant gave up; the text says which."""


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
