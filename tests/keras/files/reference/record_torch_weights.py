"""Record weights of PyTorch's modules, with inputs and outputs.

Run with torch and safetensors installed, ``python record_torch_weights.py``. It writes
``torch_<name>.safetensors`` for each module and ``torch_outputs.npz``. Images have their
channels last.
"""

from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
SHAPES = {
    "mlp": (5, 4),
    "convnet": (2, 8, 7, 3),
    "depthwise": (2, 6, 7, 3),
    "transposed": (2, 4, 5, 3),
    "one_axis": (2, 7, 4),
    "three_axes": (2, 3, 4, 5, 2),
    "attention": (2, 5, 6),
}


def modules():
    """Return functions that make the modules, by name."""
    import torch
    from torch import nn

    class Outputs(nn.Module):
        """The outputs of a recurrent module without its last state."""

        def forward(self, x):
            return x[0]

    class ChannelsFirst(nn.Module):
        def forward(self, x):
            return x.movedim(-1, 1)

    class ChannelsLast(nn.Module):
        def forward(self, x):
            return x.movedim(1, -1)

    class Named(nn.Module):
        """A bidirectional LSTM of two layers in the attribute ``rnn``, and a head."""

        def __init__(self):
            super().__init__()
            self.rnn = nn.LSTM(
                4, 3, num_layers=2, bidirectional=True, batch_first=True, bias=True
            )
            self.head = nn.Linear(6, 2)

        def forward(self, x):
            return self.head(self.rnn(x)[0])

    class Block(nn.Module):
        """Self-attention, with modules in attributes and in a list."""

        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(6, 2, batch_first=True)
            self.norm = nn.LayerNorm(6)
            self.steps = nn.ModuleList([nn.Linear(6, 8), nn.Linear(8, 6)])

        def forward(self, x):
            x = self.norm(x + self.attention(x, x, x, need_weights=False)[0])
            for layer in self.steps:
                x = torch.tanh(layer(x))
            return x

    return {
        "mlp": lambda: nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)),
        "convnet": lambda: nn.Sequential(
            ChannelsFirst(),
            nn.Conv2d(3, 6, (3, 5), padding=(1, 2)),
            nn.BatchNorm2d(6),
            nn.ReLU(),
            nn.Conv2d(6, 4, 3, stride=2, groups=2, bias=False),
            nn.Flatten(),
            nn.Linear(36, 2),
        ),
        "depthwise": lambda: nn.Sequential(
            ChannelsFirst(),
            nn.Conv2d(3, 6, (2, 3), groups=3),
            nn.GroupNorm(2, 6),
            nn.PReLU(6),
            nn.Conv2d(6, 6, 2, groups=6),
            ChannelsLast(),
            nn.RMSNorm(6, eps=1e-6),
        ),
        "transposed": lambda: nn.Sequential(
            ChannelsFirst(),
            nn.ConvTranspose2d(3, 5, (3, 2), stride=2),
            nn.ReLU(),
            nn.ConvTranspose2d(5, 4, 3),
            ChannelsLast(),
        ),
        "one_axis": lambda: nn.Sequential(
            ChannelsFirst(),
            nn.Conv1d(4, 6, 3),
            nn.ConvTranspose1d(6, 3, 2),
            ChannelsLast(),
        ),
        "three_axes": lambda: nn.Sequential(
            ChannelsFirst(),
            nn.Conv3d(2, 3, (1, 2, 3)),
            nn.ConvTranspose3d(3, 2, (2, 1, 2)),
            ChannelsLast(),
        ),
        "lstm": lambda: nn.Sequential(
            nn.LSTM(4, 3, batch_first=True), Outputs(), nn.Linear(3, 2)
        ),
        "lstm_stack": lambda: nn.Sequential(
            nn.LSTM(4, 3, num_layers=2, batch_first=True), Outputs(), nn.Linear(3, 2)
        ),
        "lstm_bidirectional": Named,
        "gru": lambda: nn.Sequential(
            nn.GRU(4, 3, num_layers=2, batch_first=True), Outputs()
        ),
        "gru_bidirectional": lambda: nn.Sequential(
            nn.GRU(4, 3, bidirectional=True, batch_first=True), Outputs()
        ),
        "rnn": lambda: nn.Sequential(nn.RNN(4, 3, batch_first=True), Outputs()),
        "text": lambda: nn.Sequential(
            nn.Embedding(11, 6), nn.LayerNorm(6), nn.Linear(6, 3)
        ),
        "attention": Block,
    }


def main():
    import torch
    from safetensors.torch import save_file

    arrays = {}
    for i, (name, make) in enumerate(modules().items()):
        torch.manual_seed(i)
        module = make()
        with torch.no_grad():
            for value in module.state_dict().values():
                if value.is_floating_point():  # no ones and zeros
                    value.add_(torch.rand(value.shape) * 0.5)
        if name == "text":
            inputs = torch.randint(0, 11, (2, 5))
        else:
            inputs = torch.randn(SHAPES.get(name, (2, 5, 4)))
        module.eval()
        with torch.no_grad():
            outputs = module(inputs)
        save_file(module.state_dict(), HERE / f"torch_{name}.safetensors")
        arrays[f"{name}_inputs"] = inputs.numpy()
        arrays[f"{name}_outputs"] = outputs.numpy()
    np.savez_compressed(HERE / "torch_outputs.npz", **arrays)


if __name__ == "__main__":
    main()
