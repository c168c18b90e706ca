"""`VariableUpdate`: what an optimizer declares of a step, so that it can be planned."""

from abc import ABC, abstractmethod

__all__ = ["VariableUpdate"]


class VariableUpdate(ABC):
    """A change of variables in place by gradients: ``update(*gradients)``.

    It writes to ``writes`` and looks at ``reads``, variables, and touches nothing else
    unless ``runs_user_code``. Where somebody still holds the array of a variable, it
    changes a copy: that is counted when it runs, so nobody is to hold one for no reason.
    """

    @abstractmethod
    def __call__(self, *gradients):
        """Make the step."""

    @property
    @abstractmethod
    def reads(self):
        """The variables that it looks at without changing them."""

    @property
    @abstractmethod
    def writes(self):
        """The variables that it changes: those that it trains, and its own."""

    @property
    @abstractmethod
    def runs_user_code(self):
        """Return whether the update may fail, or look at other variables."""

    @property
    @abstractmethod
    def gradient_memory(self):
        """For each gradient an array that belongs to the update, or None.

        A gradient that is written there is not copied; after the step the array holds
        another value.
        """

    @abstractmethod
    def with_own_memory(self):
        """The same update with memory for gradients that nobody else has."""
