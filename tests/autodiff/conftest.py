"""What the tests of Jacobians share."""

import pytest

from tapewright.autodiff import jacobian


@pytest.fixture
def widths(monkeypatch):
    """The most cotangents of each pass, in a list that grows."""
    found = []
    pull_back, made = jacobian.JacobianPass._pull_back, jacobian._Bounded.wrap

    def counted_pull_back(self, seeds):
        found.append(seeds.value.array.shape[0])
        return pull_back(self, seeds)

    def counted_made(self, value, axes):
        found[-1] = max(found[-1], value.array.shape[0])
        return made(self, value, axes)

    monkeypatch.setattr(jacobian.JacobianPass, "_pull_back", counted_pull_back)
    monkeypatch.setattr(jacobian._Bounded, "wrap", counted_made)
    return found
