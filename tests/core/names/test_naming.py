import pytest

from tapewright.core.names.naming import snake_case


@pytest.mark.parametrize(
    ("camel", "snake"),
    [
        ("Dense", "dense"),
        ("BatchNormalization", "batch_normalization"),
        ("LSTM", "lstm"),
        ("LSTMCell", "lstm_cell"),
        ("Conv2D", "conv2d"),
        ("already_snake", "already_snake"),
    ],
)
def test_snake_case(camel, snake):
    assert snake_case(camel) == snake
