"""Optimizers as users write them for Keras: `rules(keras)` has them for one `keras`.

The same text runs on Keras, where `record.py` records its steps, and on tapewright.
"""


def rules(keras):
    """Name -> class."""
    ops, Optimizer = keras.ops, keras.optimizers.Optimizer

    class Momentum(Optimizer):
        """A list of slots made one by one, and a config of its own."""

        def __init__(self, learning_rate=0.1, momentum=0.9, **kwargs):
            super().__init__(learning_rate=learning_rate, **kwargs)
            self.momentum = momentum

        def build(self, variables):
            super().build(variables)
            self.momenta = []
            for variable in variables:
                self.momenta.append(
                    self.add_variable_from_reference(
                        reference_variable=variable, name="momentum"
                    )
                )

        def update_step(self, gradient, variable, learning_rate):
            learning_rate = ops.cast(learning_rate, variable.dtype)
            gradient = ops.cast(gradient, variable.dtype)
            m = self.momenta[self._get_variable_index(variable)]
            momentum = ops.cast(self.momentum, variable.dtype)
            self.assign(
                m,
                ops.subtract(
                    ops.multiply(m, momentum), ops.multiply(gradient, learning_rate)
                ),
            )
            self.assign_add(variable, m)

        def get_config(self):
            return {**super().get_config(), "momentum": self.momentum}

    class Moments(Optimizer):
        """Two lists of slots at once, and the iteration: Adam."""

        def __init__(self, learning_rate=0.01, beta_1=0.9, beta_2=0.99, **kwargs):
            super().__init__(learning_rate=learning_rate, **kwargs)
            self.beta_1, self.beta_2 = beta_1, beta_2

        def build(self, variables):
            if self.built:
                return
            super().build(variables)
            self._momenta, self._velocities = self.add_optimizer_variables(
                variables, ["momentum", "velocity"]
            )

        def update_step(self, gradient, variable, learning_rate):
            lr = ops.cast(learning_rate, variable.dtype)
            gradient = ops.cast(gradient, variable.dtype)
            step = ops.cast(self.iterations + 1, variable.dtype)
            left_1 = 1 - ops.power(ops.cast(self.beta_1, variable.dtype), step)
            left_2 = 1 - ops.power(ops.cast(self.beta_2, variable.dtype), step)
            i = self._get_variable_index(variable)
            m, v = self._momenta[i], self._velocities[i]
            alpha = lr * ops.sqrt(left_2) / left_1
            self.assign_add(m, ops.multiply(ops.subtract(gradient, m), 1 - self.beta_1))
            self.assign_add(
                v,
                ops.multiply(ops.subtract(ops.square(gradient), v), 1 - self.beta_2),
            )
            self.assign_sub(
                variable,
                ops.divide(ops.multiply(m, alpha), ops.add(ops.sqrt(v), 1e-7)),
            )

    class RootMeanSquare(Optimizer):
        """A slot that starts elsewhere than at zero, and Python operators."""

        def build(self, variables):
            super().build(variables)
            self.squares = self.add_optimizer_variables(variables, "square", "ones")

        def update_step(self, gradient, variable, learning_rate):
            square = self.squares[self._get_variable_index(variable)]
            square.assign(0.8 * square + 0.2 * ops.square(gradient))
            rate = ops.cast(learning_rate, variable.dtype)
            variable.assign(variable - rate * gradient / (ops.sqrt(square) + 1e-6))

    class Signs(Optimizer):
        """Lion."""

        def build(self, variables):
            super().build(variables)
            self.momenta = self.add_optimizer_variables(variables, "momentum")

        def update_step(self, gradient, variable, learning_rate):
            lr = ops.cast(learning_rate, variable.dtype)
            m = self.momenta[self._get_variable_index(variable)]
            mixed = ops.add(ops.multiply(m, 0.9), ops.multiply(gradient, 0.1))
            self.assign_sub(variable, ops.multiply(lr, ops.sign(mixed)))
            self.assign(m, ops.add(ops.multiply(m, 0.99), ops.multiply(gradient, 0.01)))

    class Factored(Optimizer):
        """Slots of other shapes than the variables: rows and columns, as Adafactor."""

        def build(self, variables):
            super().build(variables)
            self.rows, self.columns = [], []
            for variable in variables:
                shape = tuple(variable.shape)
                wide = len(shape) > 1
                self.rows.append(
                    self.add_variable(
                        shape[:-1] if wide else shape, dtype=variable.dtype, name="row"
                    )
                )
                self.columns.append(
                    self.add_variable(
                        shape[:-2] + shape[-1:] if wide else (),
                        initializer="ones",
                        dtype=variable.dtype,
                        name="column",
                    )
                )

        def update_step(self, gradient, variable, learning_rate):
            lr = ops.cast(learning_rate, variable.dtype)
            i = self._get_variable_index(variable)
            square = ops.add(ops.square(gradient), 1e-30)
            if len(variable.shape) > 1:
                row, column = self.rows[i], self.columns[i]
                self.assign(row, 0.9 * row + 0.1 * ops.mean(square, axis=-1))
                self.assign(column, 0.9 * column + 0.1 * ops.mean(square, axis=-2))
                size = ops.expand_dims(row / ops.mean(row), -1) * column
            else:
                self.assign(self.rows[i], 0.9 * self.rows[i] + 0.1 * square)
                size = self.rows[i]
            step = gradient / ops.sqrt(size)
            length = ops.sqrt(ops.mean(ops.square(step)))
            self.assign_sub(variable, lr * step / ops.maximum(1.0, length))

    class Product(Optimizer):
        """State of the whole, made as an attribute, and moved on once a step: Nadam."""

        def build(self, variables):
            super().build(variables)
            self._product = keras.Variable(1.0, dtype=variables[0].dtype)

        def _backend_update_step(self, grads, trainable_variables, learning_rate):
            step = ops.cast(self.iterations + 1, self._product.dtype)
            self.assign(self._product, self._product * (1 - 0.5 * ops.power(0.9, step)))
            super()._backend_update_step(grads, trainable_variables, learning_rate)

        def update_step(self, gradient, variable, learning_rate):
            rate = ops.cast(learning_rate, variable.dtype)
            product = ops.cast(self._product, variable.dtype)
            self.assign_sub(variable, gradient * rate * product)

    kinds = Momentum, Moments, RootMeanSquare, Signs, Factored, Product
    return {kind.__name__: kind for kind in kinds}
