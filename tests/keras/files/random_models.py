"""Random graphs of layers that are shared, models inside models, and ops, by a seed.

All tensors have the shape ``[batch, 3]``. The package is `tapewright.keras`, or Keras.
"""

import numpy as np

SIZE = 3


class RandomModels:
    """Draws models of a package whose parts may come again, at any depth."""

    def __init__(self, package, seed):
        self.package, self.draw = package, np.random.RandomState(seed)
        self.layers, self.models = [], []  # models: pairs with the kind of inputs

    def _one_of(self, choices):
        return choices[self.draw.randint(len(choices))]

    def _tensor(self, tensors):
        return self._one_of(tensors[-4:])

    # --- parts

    def _layer(self):
        """A layer, more often than not one that is somewhere else as well."""
        if self.layers and self.draw.rand() < 0.6:
            return self._one_of(self.layers)
        layers = self.package.layers
        make = self._one_of(
            [
                lambda: layers.Dense(SIZE),
                lambda: layers.Dense(SIZE, activation="tanh"),
                lambda: layers.LayerNormalization(),
                lambda: layers.BatchNormalization(),
                lambda: layers.ReLU(),
                lambda: layers.Dropout(0.5),
                lambda: layers.Activation("sigmoid"),
            ]
        )
        self.layers.append(make())
        return self.layers[-1]

    def _op(self, x, y):
        ops, layers = self.package.ops, self.package.layers
        make = self._one_of(
            [
                lambda: ops.relu(x),
                lambda: x + y,
                lambda: x * 2.0,
                lambda: ops.concatenate([x[:, :1], y[:, 1:]], axis=-1),
                lambda: ops.maximum(x, y),
                lambda: layers.Add()([x, y]),
                lambda: layers.Concatenate()([x, y])[:, 1 : 1 + SIZE],
                lambda: ops.split(x, SIZE, axis=1)[1] + y,
                lambda: ops.tanh(layers.Subtract()([x, y])),
            ]
        )
        return make()

    def _sequential(self, depth):
        parts = []
        for _ in range(self.draw.randint(1, 4)):
            inside = depth and self.draw.rand() < 0.3
            parts.append(self._part(depth - 1) if inside else self._layer())
        parts = list({id(part): part for part in parts}.values())
        starts = self.draw.rand() < 0.6
        first = [self.package.Input((SIZE,))] if starts else []
        model = self.package.Sequential(first + parts)
        if not starts:
            model.build((None, SIZE))
        self.models.append((model, "tensor"))
        return model

    def _part(self, depth):
        """A model of one tensor, new or not."""
        known = [m for m, kind in self.models if kind == "tensor" and _gives_tensor(m)]
        if known and self.draw.rand() < 0.4:
            return self._one_of(known)
        if self.draw.rand() < 0.4:
            return self._sequential(depth)
        return self.functional(depth, ("tensor",), ("tensor",))[0]

    def functional(self, depth, inputs=None, outputs=None):
        """A model with models up to this depth inside, and the kind of its inputs."""
        kinds = ("tensor", "tensor", "list", "dict")
        kind = self._one_of(inputs or kinds)
        starts = [
            self.package.Input((SIZE,)) for _ in range(1 if kind == "tensor" else 2)
        ]
        tensors = list(starts)
        for _ in range(self.draw.randint(2, 6)):
            tensors += self._step(tensors, depth)
        end = self._one_of(outputs or kinds)
        last, other = tensors[-1], self._tensor(tensors)
        given = {
            "tensor": starts[0],
            "list": starts,
            "dict": dict(zip("ab", starts)),
        }
        wanted = {
            "tensor": last,
            "list": [last, other * 0.5],
            "dict": {"p": last, "q": other},
        }
        model = self.package.Model(given[kind], wanted[end])
        self.models.append((model, kind))
        return model, kind

    def _step(self, tensors, depth):
        """What one more call gives."""
        choice = self.draw.rand()
        if depth and choice < 0.2:
            return self._called(*self.functional(depth - 1), tensors)
        if depth and choice < 0.3:
            return self._called(self._sequential(depth - 1), "tensor", tensors)
        if self.models and choice < 0.45:
            return self._called(*self._one_of(self.models), tensors)
        if choice < 0.65:
            return [self._op(self._tensor(tensors), self._tensor(tensors))]
        return [self._layer()(self._tensor(tensors))]

    def _called(self, model, kind, tensors):
        x, y = self._tensor(tensors), self._tensor(tensors)
        return leaves(
            model({"tensor": x, "list": [x, y], "dict": {"a": x, "b": y}}[kind])
        )


def _gives_tensor(model):
    return not isinstance(model.output, (list, tuple, dict))


def leaves(nest):
    """The tensors of a nest, those of a dict by their keys."""
    if isinstance(nest, dict):
        nest = [nest[key] for key in sorted(nest)]
    if isinstance(nest, (list, tuple)):
        return [leaf for each in nest for leaf in leaves(each)]
    return [nest]


def random_model(package, seed, depth=3):
    """Return a model with weights that differ, and inputs for it."""
    model, kind = RandomModels(package, seed).functional(depth)
    draw = np.random.RandomState(seed)
    model.set_weights([draw.rand(*np.shape(w)) + 0.25 for w in model.get_weights()])
    x, y = draw.rand(2, 4, SIZE).astype("float32")
    return model, {"tensor": x, "list": [x, y], "dict": {"a": x, "b": y}}[kind]


def outputs_of(model, inputs):
    """Return the outputs for arrays as a list of arrays."""
    return [np.asarray(x) for x in leaves(model(inputs))]
