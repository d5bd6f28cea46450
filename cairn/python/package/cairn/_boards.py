# SPDX-License-Identifier: Apache-2.0
"""Key-value stores and messages of other libraries, as boards of the library.

`put`, `find`, `remove` and `settled` never block. All ranks read what rank 0 puts; rank 0 reads
what the others put.
"""

from __future__ import annotations

from typing import Any

from cairn import _core


class JaxBoard:
    """On the key-value store of jax.distributed."""

    any_thread = True

    def __init__(self, client: Any, root: str):
        self._client = client
        self._root = root

    def open(self, rank: int, count: int) -> _core.Coordinator:
        try:
            self._client.key_value_set(f"{self._root}/here/{rank}", "")
        except RuntimeError as error:
            if "ALREADY_EXISTS" not in str(error):
                raise
            _core.refuse_rank(rank)
        return _core.Coordinator.on_board(self, rank, count)

    def put(self, key: str, value: bytes) -> None:
        self._client.key_value_set_bytes(f"{self._root}/{key}/note", value, allow_overwrite=True)

    def find(self, key: str) -> bytes | None:
        # The one question that is no error if there is nothing.
        found = self._client.key_value_dir_get_bytes(f"{self._root}/{key}/")
        return found[0][1] if found else None

    def remove(self, key: str) -> None:
        self._client.key_value_delete(f"{self._root}/{key}/note")

    def settled(self) -> bool:
        return True


class TorchBoard:
    """On the store of torch.distributed's default process group."""

    any_thread = True

    def __init__(self, store: Any, root: str):
        self._store = store
        self._root = root

    def open(self, rank: int, count: int) -> _core.Coordinator:
        if self._store.add(f"{self._root}/here/{rank}", 1) > 1:
            _core.refuse_rank(rank)
        return _core.Coordinator.on_board(self, rank, count)

    def put(self, key: str, value: bytes) -> None:
        self._store.set(f"{self._root}/{key}", value)

    def find(self, key: str) -> bytes | None:
        name = f"{self._root}/{key}"
        return bytes(self._store.get(name)) if self._store.check([name]) else None

    def remove(self, key: str) -> None:
        self._store.delete_key(f"{self._root}/{key}")

    def settled(self) -> bool:
        return True


class MpiBoard:
    """Messages from rank to rank on a duplicate of the communicator, so that they do not mix with
    others.

    Everything is begun and none of it waited for: the duplicate too, which is there when all ranks
    have asked for it.
    """

    def __init__(self, mpi: Any, communicator: Any):
        level = mpi.Query_thread()
        self.any_thread = bool(level >= mpi.THREAD_MULTIPLE)
        self._main_only = bool(level < mpi.THREAD_SERIALIZED)
        self._mpi = mpi
        self._rank: int = communicator.Get_rank()
        self._count: int = communicator.Get_size()
        self._copy, self._copying = communicator.Idup()
        self._ready = False
        self._unsent: list[bytes] = []
        self._outgoing: list[tuple[Any, bytes]] = []
        self._incoming: list[tuple[Any, bytearray]] = []
        self._notes: dict[str, bytes] = {}

    def open(self) -> _core.Coordinator:
        return _core.Coordinator.on_board(self, self._rank, self._count)

    def put(self, key: str, value: bytes) -> None:
        self._unsent.append(key.encode() + b"\n" + value)
        self._move()

    def find(self, key: str) -> bytes | None:
        self._move()
        return self._notes.pop(key, None)

    def remove(self, key: str) -> None:
        """What was sent is with others."""

    def settled(self) -> bool:
        self._move()
        return not (self._unsent or self._outgoing or self._incoming)

    def _move(self) -> None:
        if self._main_only and not self._mpi.Is_thread_main():
            _core.refuse_mpi_thread()
        if not self._ready:
            if not self._copying.Test():
                return
            self._copy.Set_errhandler(self._mpi.ERRORS_RETURN)
            self._ready = True
        self._send()
        self._receive()

    def _send(self) -> None:
        for note in self._unsent:
            for to in range(1, self._count) if self._rank == 0 else (0,):
                self._outgoing.append((self._copy.Isend([note, self._mpi.BYTE], dest=to), note))
        self._unsent.clear()
        self._outgoing = [each for each in self._outgoing if not each[0].Test()]

    def _receive(self) -> None:
        status = self._mpi.Status()
        while (message := self._copy.Improbe(status=status)) is not None:
            memory = bytearray(status.Get_count(self._mpi.BYTE))
            self._incoming.append((message.Irecv([memory, self._mpi.BYTE]), memory))
        # One after the other: a short note must not overtake a long one.
        while self._incoming and self._incoming[0][0].Test():
            key, _, value = self._incoming.pop(0)[1].partition(b"\n")
            self._notes[key.decode()] = bytes(value)
