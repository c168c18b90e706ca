"""Draw the picture of docs/background/how_it_is_built.md: the way of an op call."""

from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

EDGE, FILL, ACCENT = "#51606e", "#eef3f6", "#d7ecf4"


class Drawing:
    def __init__(self, width, height):
        self.figure = Figure(figsize=(width, height), layout="constrained")
        self.axes = self.figure.subplots()
        self.axes.set(xlim=(0, 100), ylim=(0, 56))
        self.axes.axis("off")

    def box(self, x, y, width, title, text="", fill=FILL, height=8):
        style = "round,pad=0,rounding_size=1"
        patch = FancyBboxPatch((x, y), width, height, style, fc=fill, ec=EDGE, lw=1)
        self.axes.add_patch(patch)
        middle = x + width / 2
        lift = 1.5 if text else 0
        centred = {"ha": "center", "va": "center"}
        self.axes.text(
            middle, y + height / 2 + lift, title, size=9.5, weight="bold", **centred
        )
        if text:
            self.axes.text(middle, y + height / 2 - 1.7, text, size=7.8, **centred)

    def arrow(self, start, end):
        style = {"arrowstyle": "-|>", "mutation_scale": 10, "color": EDGE, "lw": 1}
        self.axes.add_patch(FancyArrowPatch(start, end, **style))


def main():
    drawing = Drawing(8.4, 4.9)
    dispatch = "core/dispatch asks the stack of interpreters"
    drawing.box(0, 47, 100, "op call: tw.tanh(x)", dispatch, ACCENT)
    interpreters = [
        ("none", "run the kernel\n(NumPy, CuPy)"),
        ("tape", "run and record\n(GradientTape)"),
        ("batching", "one more axis\n(vectorized_map)"),
        ("forward", "carry tangents\n(jvp)"),
        ("tracer", "write a node\n(tw.function)"),
    ]
    for i, (title, text) in enumerate(interpreters):
        x = i * 20.5
        drawing.box(x, 33, 18, title, text, height=9)
        drawing.arrow((x + 9, 47), (x + 9, 42))
    stages = [
        ("Graph", "nodes are ops", 82),
        ("passes", "smaller, equal", 61.5),
        ("Program", "array instructions", 41),
        ("buffers", "who owns memory", 20.5),
    ]
    for title, text, x in stages:
        drawing.box(x, 17, 18, title, text)
    drawing.arrow((91, 33), (91, 25))
    for left in (61.5, 41, 20.5):
        drawing.arrow((left + 20.5, 21), (left + 18, 21))
    targets = [
        ("NumPy target", "one function of array calls", 0),
        ("native target", "loops and products in LLVM", 34.5),
        ("CUDA target", "kernels in one CUDA graph", 69),
    ]
    for title, text, x in targets:
        drawing.box(x, 1, 31, title, text, ACCENT)
        drawing.arrow((29.5, 17), (x + 15.5, 9))
    path = Path(__file__).with_name("how_it_is_built.png")
    drawing.figure.savefig(path, dpi=100)


if __name__ == "__main__":
    main()
