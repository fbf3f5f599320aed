"""The template: the process that jobs are copies of, and that does nothing but copy itself.

A job can read every byte of the memory that it was forked from. So whoever forks must not know how earlier jobs ran:
the template waits for an order, forks, hands the new process over to the worker and forgets. The worker, its parent, is
also the parent of its copies (CLONE_PARENT): it watches, kills and reaps them, and tells the template nothing.

All that an order leaves here lies in one buffer, the slate, which is wiped before the next one; it is filled by the
kernel and read by the child alone. An interpreter leaves traces too: free lists, and counts in its bytecode of what it
ran. So the loop makes no object that is not gone before the next one is made, and is practised until the interpreter
has settled how to run it. Only the names of files that orders allow to be read (databases) stay here.
"""

from __future__ import annotations

import ctypes
import marshal
import os
import signal
import struct
from _socket import AF_UNIX, CMSG_LEN, CMSG_SPACE, SCM_RIGHTS, SOCK_SEQPACKET, SOL_SOCKET, socket, socketpair
from array import array
from collections import deque
from collections.abc import Callable
from fcntl import F_DUPFD_CLOEXEC, fcntl
from os import closerange, pwrite
from typing import Any

from rlvrlab.judge.jail import child, heap, kernel, large_pages, practice
from rlvrlab.judge.jail.child import DESCRIPTORS, JOB, LOWEST_OWN, REPORT
from rlvrlab.judge.jail.limits import FILES
from rlvrlab.judge.jail.numbers import BEFORE_THE_FIRST
from rlvrlab.judge.jail.walls import LOWEST_RULESET, Key, Walls

NAME = b"rlvr-template"
ORDERS, WORKER, COUNTER, FIRST_FREE = range(LOWEST_OWN, LOWEST_OWN + 4)
"""Its own descriptors, and the first of those that come with an order."""
RECEIVED = tuple(range(FIRST_FREE, FIRST_FREE + DESCRIPTORS))
"""Where the descriptors of an order come to lie, as these are the lowest that are free."""
PIDFD = FIRST_FREE + DESCRIPTORS
PARKED = FILES - 8
LARGEST_MESSAGE = 1 << 16
ORDERS_FOR_PRACTICE = 40
"""The interpreter changes how it runs a function after some calls, and then no more."""
PR_GET_TID_ADDRESS = 40
CLONE_PIDFD, CLONE_PARENT, CLONE_CHILD_CLEARTID, CLONE_CHILD_SETTID = 0x1000, 0x8000, 0x200000, 0x1000000
FORK = CLONE_PARENT | CLONE_PIDFD | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | signal.SIGCHLD

libc = ctypes.PyDLL(None)
receive, send, memmove = libc.recvmsg, libc.sendmsg, libc.memmove
memmove.restype = None
Message = struct.Struct("@PIPNPNi4x")
"""A `struct msghdr`: name and its length, pieces and their number, ancillary data and its length, flags."""
Piece = struct.Struct("@PN")
Rights = struct.Struct("@Nii")
"""The head of ancillary data; descriptors follow."""
Arguments = tuple[Any, ...]
"""Made once: what ctypes has to convert for a call leaves its trace in free memory."""
number, pointer = ctypes.c_size_t.from_param, ctypes.c_void_p.from_param


class Slate:
    """What the kernel reads and writes when an order comes in and a child is passed on."""

    def __init__(self) -> None:
        received, passed_on = (CMSG_SPACE(4 * count) for count in (DESCRIPTORS, 3))
        sizes = (Message.size, Message.size, Piece.size, Piece.size, received, passed_on, LARGEST_MESSAGE)
        self._all = ctypes.create_string_buffer(sum(sizes))
        here = ctypes.addressof(self._all)
        places = [here + sum(sizes[:count]) for count in range(len(sizes))]
        incoming, outgoing, taken, given, came, passing, self.message = places
        content = (
            Message.pack(0, 0, taken, 1, came, received, 0)
            + Message.pack(0, 0, given, 1, passing, passed_on, 0)
            + Piece.pack(self.message, LARGEST_MESSAGE)
            + Piece.pack(self.message, 1)
            + bytes(received)
            + Rights.pack(CMSG_LEN(3 * 4), SOL_SOCKET, SCM_RIGHTS)
            + struct.pack("iii", PIDFD, FIRST_FREE + REPORT, FIRST_FREE + JOB)
        ).ljust(sum(sizes[:-1]) + 1, b"\0")
        self.wiping: Arguments = pointer(here), content, number(len(content))
        self.incoming, self.outgoing = pointer(incoming), pointer(outgoing)
        self.pidfd = pointer(passing + Rights.size)
        """Where the kernel puts the pidfd of a new child."""

    def key(self, size: int) -> Key:
        """What an order of this size says of the files that may be read; one that says nothing is a single byte."""
        key: Key = marshal.loads(ctypes.string_at(self.message, size))  # noqa: S302 - the judge wrote it
        return key


class Template:
    """Forks a child for every order and passes on its pidfd, its report and its job."""

    def __init__(self, walls: Walls, roles: dict[str, child.Role], counted: bool) -> None:
        self.walls, self.roles, self.counted = walls, roles, counted
        self.parent = os.getppid()
        self.slate = Slate()
        self.receiving, self.sending = (ORDERS, self.slate.incoming, 0), (WORKER, self.slate.outgoing, 0)
        self.wiping = self.slate.wiping
        self.fork: Callable[..., int] = libc.syscall
        self.forking = self._forking()

    def _forking(self) -> Arguments:
        """As the C library forks, which keeps the number of the running thread in a place that the kernel knows of.

        Machines differ in which of the last two arguments is that place; the other one is not looked at.
        """
        place = ctypes.c_void_p()
        libc.prctl(PR_GET_TID_ADDRESS, ctypes.byref(place), 0, 0, 0)
        thread = pointer(place.value)
        return kernel.NUMBERS["clone"], number(FORK), None, self.slate.pidfd, thread, thread

    def serve(self) -> None:
        """Take orders until nobody can give any."""
        deque(iter(self.obey, False), maxlen=0)  # a loop without bytecode, and so without counts

    def obey(self) -> bool:
        """Take one order; False when there will be none."""
        memmove(*self.wiping)
        size = receive(*self.receiving)
        if size <= 0:
            return False
        if size > 1:
            self.walls.way(self.slate.key(size))
        if self.counted:
            pwrite(COUNTER, BEFORE_THE_FIRST, 0)
        pid = self.fork(*self.forking)
        if pid == 0:
            self._be_a_child(size)
        if pid < 0 or send(*self.sending) < 0:
            raise OSError("no child could be started or passed on")
        closerange(FIRST_FREE, LOWEST_RULESET)
        return True

    def _be_a_child(self, size: int) -> None:
        readable, _ = self.slate.key(size) if size > 1 else ((), False)
        child.live(self.walls, readable, RECEIVED, self.roles, self.parent)

    def practise(self) -> None:
        """Obey orders without a fork, so that the first real one finds this memory as every later one will.

        Every other time it goes on as a child would: what an interpreter fills in on the way into the jail is then
        there already, and no child has to copy the pages that it lies on.
        """
        kept = [fcntl(one, F_DUPFD_CLOEXEC, PARKED) for one in (ORDERS, WORKER)]
        judge, worker = parked_pair(ORDERS), parked_pair(WORKER)
        job = _parked(os.memfd_create("practice"))
        os.write(job, practice.BEGINNING + marshal.dumps((False, {"role": practice.ROLE})))
        given = array("i", [0] * (DESCRIPTORS - 1) + [job])
        fork, roles = self.fork, self.roles
        with practice.harmless(self.walls) as self.roles:
            for number in range(ORDERS_FOR_PRACTICE):
                judge.sendmsg((b".",), ((SOL_SOCKET, SCM_RIGHTS, given),))
                self.fork = (_pretend_to_be_a_child, _pretend)[number % 2]
                self.obey()
                worker.recv(1)
                practice.put_back()
        self.roles = roles
        os.close(job)
        judge.close()
        worker.close()
        for one, place in zip(kept, (ORDERS, WORKER), strict=True):
            os.dup2(one, place, inheritable=False)
            os.close(one)
        self.fork = fork


def _pretend(*_: object) -> int:
    """Instead of a fork: the kernel's answer, and a descriptor where the new child's would be."""
    return os.dup(0)


def _pretend_to_be_a_child(*_: object) -> int:
    """The same, with the kernel's answer to the child."""
    os.dup(0)
    return 0


def parked_pair(place: int) -> socket:
    """One end of a new pair of sockets, out of the way; the other one is this descriptor."""
    ours, theirs = socketpair(AF_UNIX, SOCK_SEQPACKET)
    os.dup2(theirs.fileno(), place, inheritable=False)
    theirs.close()
    return socket(fileno=_parked(ours.detach()))


def _parked(descriptor: int) -> int:
    """The same file by a number that is out of the way."""
    parked = fcntl(descriptor, F_DUPFD_CLOEXEC, PARKED)
    os.close(descriptor)
    return parked


def live(orders: int, worker: int, counter: int, walls: Walls, roles: dict[str, child.Role]) -> None:
    """The whole life of a template; it ends with its worker, or when there will be no more orders."""
    libc.prctl(kernel.PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    libc.prctl(kernel.PR_SET_NAME, NAME, 0, 0, 0)
    parked = [fcntl(one if one >= 0 else 0, F_DUPFD_CLOEXEC, PARKED) for one in (orders, worker, counter)]
    closerange(LOWEST_OWN, PARKED)
    for one, place in zip(parked, (ORDERS, WORKER, COUNTER), strict=True):
        os.dup2(one, place, inheritable=False)
    closerange(PARKED, FILES)
    for writable in (True, False):
        walls.way(((), writable))
    template = Template(walls, roles, counter >= 0)
    template.practise()
    heap.fill_holes()
    large_pages.gather(large_pages.OF_A_TEMPLATE)  # those that were copied since the worker made them are small again
    walls.narrow()
    template.serve()
