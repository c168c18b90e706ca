"""Record models that PyTorch exports, with its outputs: `NAME.onnx` and `NAME.npz` here.

    pip install torch==2.13.0 onnx onnxscript numpy
    python tests/formats/onnx/reference/record_models.py [NAME ...]

Each model is exported with open sizes by the exporter in its name, ``script`` (TorchScript)
or ``dynamo``. ``x0``, ``x1``, ... are inputs and ``y0`` the output, for two sets of sizes:
``a_x0``, ``b_x0``. ``grad:NAME`` are derivatives of the mean square of the first output by
the weights, in evaluation mode. Biases are random, so that swapped ones show.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import torch
from torch import nn
from torch.nn import functional as F

HERE = Path(__file__).parent
# An exporter that fails, or that unrolls the steps of a loop.
FAILING = {("encoder", "script"), ("rnn", "dynamo")}


class Convnet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, (3, 5), stride=(2, 1), padding=(1, 2))
        self.norm1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 8, 3, padding=2, dilation=2, groups=4)
        self.norm2 = nn.BatchNorm2d(8)
        self.dense = nn.Linear(8 * 5, 5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(x))), 2)
        x = F.avg_pool2d(
            F.silu(self.norm2(self.conv2(x))), 2, ceil_mode=True, padding=1
        )
        x = F.dropout(x[:, :, 1:, 1:], 0.5, self.training)
        return self.dense(F.adaptive_avg_pool2d(x, (1, 5)).flatten(1))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(4, 8, 3, stride=2, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(8)
        self.short = nn.Conv2d(4, 8, 1, stride=2)

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        y = F.relu(self.norm2(self.conv2(y)) + self.short(x))
        return y.mean((2, 3))


class Upsampler(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(2, 4, 3, stride=2, padding=1)
        self.norm = nn.GroupNorm(2, 4)
        self.up = nn.ConvTranspose2d(4, 6, 3, 2, 1, output_padding=1, groups=2)
        self.instance = nn.InstanceNorm2d(6, affine=True)
        self.act = nn.PReLU(6)

    def forward(self, x):
        y = self.act(self.instance(self.up(F.gelu(self.norm(self.down(x))))))
        y = torch.cat([y, F.interpolate(y, scale_factor=0.5, mode="nearest")
                       .repeat_interleave(2, 2).repeat_interleave(2, 3)], 1)  # fmt: skip
        y = F.interpolate(y, size=(10, 12), mode="bilinear", align_corners=False)
        return F.pad(y, (1, 2, 1, 0), mode="reflect").softmax(1)


class Sequence(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.rnn = kind(5, 6, batch_first=True, **options)

    def forward(self, x):
        y, state = self.rnn(x)
        state = state[0] if isinstance(state, tuple) else state
        return torch.cat([y[:, -1], state[-1]], -1), y


class Tokens(nn.Module):
    """A small GPT."""

    def __init__(self, words=20, width=16, heads=2):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(32, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(approximate="tanh"),
            nn.Linear(2 * width, width),
        )  # fmt: skip
        self.last, self.heads = nn.LayerNorm(width), heads

    def forward(self, ids):
        n, t = ids.shape
        x = self.words(ids) + self.places(torch.arange(t, device=ids.device))
        q, k, v = self.qkv(self.norm1(x)).chunk(3, -1)
        q, k, v = [
            y.view(n, t, self.heads, -1).transpose(1, 2) for y in (q, k, v)
        ]  # fmt: skip
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(n, t, -1))
        x = x + self.mlp(self.norm2(x))
        return self.last(x) @ self.words.weight.T


class Masked(nn.Module):
    """An encoder layer with a mask of padding, and ops on shapes."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.dense = nn.Linear(8, 8)

    def forward(self, x, lengths):
        keep = torch.arange(x.shape[1])[None] < lengths[:, None]
        scores = torch.einsum("bqd,bkd->bqk", self.dense(x), x) / x.shape[-1] ** 0.5
        scores = scores.masked_fill(~keep[:, None], -1e9)
        y = scores.softmax(-1) @ x
        y = y * torch.where(keep, 1.0, 0.0)[:, :, None].expand(-1, -1, y.shape[2])
        best, at = y.topk(3, dim=-1)
        return torch.cat([best, y.gather(2, at.flip(-1)), y.cumsum(1)], -1)


def models():
    n, s = 3, 7
    mlp = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 8), nn.ELU(0.7),
                        nn.LayerNorm(8), nn.Linear(8, 3), nn.LogSoftmax(-1))  # fmt: skip
    encoder = nn.TransformerEncoderLayer(12, 3, 20, batch_first=True, activation="gelu",
                                         norm_first=True)  # fmt: skip
    floats = torch.randn
    words = lambda *shape: torch.randint(0, 20, shape)  # noqa: E731
    batch, both = [{0: "n"}], [{0: "n", 1: "s"}]
    sizes = [floats(n, s, 5)], [floats(2, 4, 5)]
    yield "mlp", mlp, [floats(n, 6)], [floats(5, 6)], batch
    images = [floats(n, 3, 18, 20)], [floats(2, 3, 18, 20)]
    yield "convnet", Convnet(), *images, batch
    yield "residual", Residual(), [floats(n, 4, 9, 8)], [floats(2, 4, 9, 8)], batch
    yield "upsampler", Upsampler(), [floats(n, 2, 8, 10)], [floats(2, 2, 8, 10)], batch
    yield "encoder", encoder, [floats(n, s, 12)], [floats(2, 4, 12)], both
    yield "lstm", Sequence(nn.LSTM, bidirectional=True, num_layers=2), *sizes, both
    yield "gru", Sequence(nn.GRU), *sizes, both
    yield "rnn", Sequence(nn.RNN, nonlinearity="relu"), *sizes, both
    yield "gpt", Tokens(), [words(n, s)], [words(2, 5)], both
    masked = (
        [floats(n, s, 8), torch.tensor([7, 3, 5])],
        [floats(2, 4, 8), torch.tensor([1, 4])],
    )
    yield "masked", Masked(), *masked, [{0: "n", 1: "s"}, {0: "n"}]


def export(model, inputs, open_sizes, dynamo):
    names = [f"x{i}" for i in range(len(inputs))]
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.onnx"
        if dynamo:
            shapes = tuple([{a: torch.export.Dim(n, min=1, max=64) for a, n in each.items()}
                            for each in open_sizes])  # fmt: skip
            torch.onnx.export(
                model, tuple(inputs), path, dynamo=True, dynamic_shapes=shapes,
                input_names=names, external_data=False, verbose=False,
            )  # fmt: skip
        else:
            torch.onnx.export(
                model, tuple(inputs), path, dynamo=False, input_names=names,
                dynamic_axes=dict(zip(names, open_sizes)), opset_version=17,
                training=torch.onnx.TrainingMode.PRESERVE,  # keeps batch normalization
            )  # fmt: skip
        found = onnx.load(path)
    _strip(found)
    return found


def _strip(model):
    """Drop the notes of the exporter, which are larger than the model."""
    model.graph.ClearField("value_info")
    del model.metadata_props[:]
    for node in model.graph.node:
        node.ClearField("doc_string")
        del node.metadata_props[:]
    for each in [*model.graph.input, *model.graph.output, *model.graph.initializer]:
        each.ClearField("doc_string")
        del each.metadata_props[:]
    for function in model.functions:
        for node in function.node:
            node.ClearField("doc_string")


def main(names):
    torch.manual_seed(0)
    for name, model, first, second, open_sizes in models():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                nn.init.normal_(parameter, 0.3, 0.5)
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                nn.init.normal_(module.running_mean)
                nn.init.uniform_(module.running_var, 0.5, 2.0)
        model.eval()
        if names and name not in names:
            continue
        found = {}
        for key, inputs in (("a", first), ("b", second)):
            outputs = model(*inputs)
            outputs = outputs if isinstance(outputs, tuple) else (outputs,)
            found.update({f"{key}_x{i}": x.numpy() for i, x in enumerate(inputs)})
            found.update(
                {f"{key}_y{i}": y.detach().numpy() for i, y in enumerate(outputs)}
            )
        if name in ("convnet", "encoder"):
            for module in model.modules():
                if isinstance(
                    module, nn.MultiheadAttention | nn.TransformerEncoderLayer
                ):
                    module.train()  # the fast path of evaluation has no gradients
                if isinstance(module, nn.MultiheadAttention):
                    module.dropout = 0.0
                if isinstance(module, nn.Dropout):
                    module.p = 0.0
            y = model(*first)
            (y**2).mean().backward()
            found.update(
                {f"grad:{n}": p.grad.numpy() for n, p in model.named_parameters()}
            )
            model.eval()
        np.savez_compressed(HERE / f"{name}.npz", **found)
        for exporter in ("script", "dynamo"):
            if (name, exporter) in FAILING:
                continue
            proto = export(model, first, open_sizes, exporter == "dynamo")
            onnx.save(proto, HERE / f"{name}_{exporter}.onnx")
            print(name, exporter, len(proto.graph.node), proto.ByteSize())


if __name__ == "__main__":
    main(sys.argv[1:])
