"""SIGTERM as a request that waits for the end of a step."""

import os
import signal
import threading


class Termination:
    """Record a request to terminate the process, until its state is saved.

    The previous handler is called afterwards, by `pass_on`; a second SIGTERM does not
    wait. Nothing is recorded in threads other than the main one, where Python has no
    signals.
    """

    def __init__(self):
        self.asked = False
        self._previous = None
        self._installed = False

    def install(self):
        """Install the handler, in the main thread only."""
        if self._installed or threading.current_thread() is not threading.main_thread():
            return
        self.asked = False
        self._previous = signal.signal(signal.SIGTERM, self._note)
        self._installed = True

    def remove(self):
        """Restore the previous handler, unless another handler was installed since."""
        if not self._installed:
            return
        if threading.current_thread() is not threading.main_thread():
            return
        self._installed = False
        if signal.getsignal(signal.SIGTERM) == self._note:
            previous = self._previous
            signal.signal(
                signal.SIGTERM, signal.SIG_DFL if previous is None else previous
            )

    def _note(self, number, frame):
        if self.asked:
            self.pass_on(frame)
        self.asked = True

    def pass_on(self, frame=None):
        """Act as SIGTERM would have: usually, end the process."""
        self.remove()
        self.asked = False
        if callable(self._previous):
            self._previous(signal.SIGTERM, frame)
        elif self._previous is not signal.SIG_IGN:
            os.kill(os.getpid(), signal.SIGTERM)
