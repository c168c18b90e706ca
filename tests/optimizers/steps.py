"""Steps of optimizers on variables made here."""

import tapewright as tw


def variable(*values, dtype="float32", name="v"):
    return tw.Variable(list(values), dtype=dtype, name=name)


def run(optimizer, variables, *steps, traced=False):
    """Applies each of the steps, a list of gradients."""

    def step(*gradients):
        optimizer.apply(gradients, variables)

    step = tw.function(step) if traced else step
    for gradients in steps:
        step(*[tw.constant(g) for g in gradients])


EVERY_RULE = [
    "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "Ftrl", "Lamb", "Lion", "Nadam",
    "RMSprop", "SGD",
]  # fmt: skip


def stepped(optimizer, start, gradient, steps=1):
    v = variable(*start)
    for _ in range(steps):
        optimizer.apply_gradients([(tw.constant(gradient), v)])
    return v.numpy()
