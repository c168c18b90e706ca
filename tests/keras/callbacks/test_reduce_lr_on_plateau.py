"""`ReduceLROnPlateau`: lower rates, refused factors."""

import pytest

from tapewright.keras.callbacks import (
    ReduceLROnPlateau,
)

from .loops_by_hand import lead


def test_a_plateau_is_told_of_and_lowers_the_rate(capsys):
    model = lead(ReduceLROnPlateau(patience=1, factor=0.5, verbose=1), [1.0, 1.0])
    assert float(model.optimizer.learning_rate) == pytest.approx(0.05)
    assert "reducing learning rate to 0.05" in capsys.readouterr().out


def test_a_factor_of_one_reduces_nothing_and_is_refused():
    with pytest.raises(ValueError, match="factor .*got 1"):
        ReduceLROnPlateau(factor=1)
