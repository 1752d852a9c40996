"""A command on a terminal, as a test sees it."""
import fcntl
import os
import pty
import select
import struct
import termios
import time


class Terminal:
    """A command on a terminal of so many rows."""

    def __init__(self, *command, rows=40, env=None):
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            os.execvpe(command[0], command, os.environ | {"TERM": "xterm"} | (env or {}))
        self.resize(rows)
        self.seen = ""

    def resize(self, rows):
        fcntl.ioctl(self.file, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 120, 0, 0))

    def read_until(self, wanted, timeout_s=30):
        deadline = time.monotonic() + timeout_s
        while wanted not in self.seen:
            ready, _, _ = select.select([self.file], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise AssertionError(f"not shown in {timeout_s} s: {wanted!r} in {self.seen!r}")
            try:
                self.seen += os.read(self.file, 65536).decode()
            except OSError as e:  # the terminal's other side is closed
                raise AssertionError(f"ended without {wanted!r}: {self.seen!r}") from e
        at = self.seen.index(wanted) + len(wanted)
        before, self.seen = self.seen[:at], self.seen[at:]
        return before

    def write(self, text):
        os.write(self.file, text.encode())

    def end(self):
        _, status = os.waitpid(self.pid, 0)
        os.close(self.file)
        return os.waitstatus_to_exitcode(status)
