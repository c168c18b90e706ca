"""Save a custom gradient
======================

Save a function with a custom gradient, and load it in a process without its code.

::

    python examples/saved_custom_gradient.py  (about 3 s; out/saved_custom_gradient.png)

In float32, ``log(1 + exp(x))`` overflows for ``x`` above 88.7, where the gradient of
its ops is NaN. A hand-written gradient, with `custom_gradient`, is correct everywhere.
The script saves a module with this function, and with another one that clips its gradient,
as graphs in one HDF5 file. A new process loads the file and computes first and second
derivatives. If the module is saved without custom gradients, the loaded function still
works, but its gradient raises an error.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import numpy as np

import tapewright as tw

# Code of the new process, which uses only two files.
READ = """
import sys
import numpy as np
import tapewright as tw

x = tw.constant(np.load(sys.argv[2]))
module = tw.saved_model.load(sys.argv[1])
with tw.GradientTape() as outer:
    outer.watch(x)
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = module.softplus(x)
    try:
        slope = tape.gradient(y, x)
    except LookupError as error:
        sys.exit(f"LookupError: {str(error).partition(': the')[0]}")
with tw.GradientTape() as tape:
    tape.watch(x)
    z = module.clipped(x)
values = y, slope, outer.gradient(slope, x), tape.gradient(z, x)
np.save(sys.argv[2], np.stack([value.numpy() for value in values]))
"""

# %%
# Two custom gradients
# --------------------
#
# Each returns its value and a function of the cotangent.


@tw.custom_gradient
def log1pexp(x):
    return tw.math.log(1 + tw.exp(x)), lambda upstream: upstream * tw.sigmoid(x)


@tw.custom_gradient
def clip_gradients(x):
    return x, lambda upstream: tw.clip_by_norm(upstream, 0.5)


# %%
# A module to save
# ----------------


class Functions(tw.Module):
    """Two functions that accept tensors of any shape."""

    @tw.function(input_signature=[tw.TensorSpec(None)])
    def softplus(self, x):
        return log1pexp(x)

    @tw.function(input_signature=[tw.TensorSpec(None)])
    def clipped(self, x):
        return clip_gradients(x)


# %%
# Derivatives, in this process and in a new one
# ---------------------------------------------


def derivatives(f, x):
    """Return ``f(x)``, ``f'(x)`` and ``f''(x)`` of an element-wise function."""
    with tw.GradientTape() as outer:
        outer.watch(x)
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        slope = tape.gradient(y, x)
    return [y.numpy(), slope.numpy(), outer.gradient(slope, x).numpy()]


def in_a_fresh_process(path, x, out):
    """Return the result of a process that loads the file: an array or a message."""
    points = out / "points.npy"
    np.save(points, x)
    command = [sys.executable, "-c", READ, path, points]
    done = subprocess.run(command, capture_output=True, text=True)
    return np.load(points) if done.returncode == 0 else done.stderr.strip()


# %%
# Picture and command line
# ------------------------


def draw(path, x, by_ops, loaded):
    """Draw the derivative of the ops, the custom gradient and the second derivative."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print(f"no {path}: matplotlib is not installed (pip install matplotlib)")
        return
    figure = Figure(figsize=(11, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(x, loaded[1], "C1", label="loaded custom gradient")
    left.plot(x, by_ops[1], "C0--", label="gradient of the ops (then NaN)")
    left.set_title("Derivative of log(1 + exp(x)) in float32")
    near = np.abs(x) < 10
    right.plot(x[near], loaded[1][near], "C1", label="first derivative")
    right.plot(x[near], loaded[2][near], "C2", label="second derivative")
    right.set_title("Derivatives of the loaded function")
    for axes in left, right:
        axes.set(xlabel="x")
        axes.legend()
    figure.savefig(path, dpi=120)
    print(f"wrote {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--epochs", type=int, help="ignored: nothing is trained")
    parser.add_argument("--out", type=Path, default="out", help="output folder")
    args = parser.parse_args()

    args.out.mkdir(parents=True, exist_ok=True)
    module, x = Functions(), tw.linspace(-120.0, 120.0, 481)
    by_ops = derivatives(lambda x: tw.math.log(1 + tw.exp(x)), x)
    by_hand = derivatives(log1pexp, x)

    path = args.out / "functions.h5"
    tw.saved_model.save(module, path)
    loaded = in_a_fresh_process(path, x.numpy(), args.out)
    if isinstance(loaded, str):
        return loaded
    print("    x   of the ops   custom gradient   loaded: first   second derivative")
    for i in range(240, 481, 80):
        numbers = by_ops[1][i], by_hand[1][i], loaded[1][i], loaded[2][i]
        print("{:5.0f} {:12.4f} {:17.4f} {:15.4f} {:19.4f}".format(x[i], *numbers))
    same = all([np.allclose(a, b, 1e-6, 1e-7) for a, b in zip(by_hand[:2], loaded)])
    print(f"loaded function and gradient are equal up to rounding: {same}")
    print(f"norm of the clipped gradient: {np.linalg.norm(loaded[3]):.1f}")

    options = tw.saved_model.SaveOptions(experimental_custom_gradients=False)
    tw.saved_model.save(module, path, options=options)
    print(f"without custom gradients: {in_a_fresh_process(path, x.numpy(), args.out)}")
    draw(args.out / "saved_custom_gradient.png", x.numpy(), by_ops, loaded)
    return 0 if same else "the loaded gradient differs"


if __name__ == "__main__" and (code := main()):
    sys.exit(code)
