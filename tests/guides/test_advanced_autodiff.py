"""What TensorFlow's guide "Advanced automatic differentiation" shows, snippet by snippet."""

import numpy as np
import pytest

import tapewright as tf


def dense(units, activation=None, inputs=5):
    """A layer of the guide, by hand: gives (function, kernel, bias)."""
    kernel = tf.Variable(tf.random.normal([inputs, units]) * 0.5)
    bias = tf.Variable(tf.zeros([units]))

    def layer(x):
        outputs = tf.matmul(x, kernel) + bias
        return outputs if activation is None else activation(outputs)

    return layer, kernel, bias


# ------------------------------------------------------------ controlling the record


def test_pausing_the_tape_leaves_out_one_term(capsys):
    x, y = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as t:
        x_sq = x * x
        with t.stop_recording():
            y_sq = y * y
        z = x_sq + y_sq
    grad = t.gradient(z, {"x": x, "y": y})
    print("dz/dx:", grad["x"])
    print("dz/dy:", grad["y"])
    printed = capsys.readouterr().out
    assert printed == "dz/dx: tf.Tensor(4.0, shape=(), dtype=float32)\ndz/dy: None\n"


@pytest.mark.parametrize("reset", [True, False])
def test_a_reset_starts_over(reset):
    x, y = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as t:
        y_sq = y * y
        if reset:
            t.reset()
        z = x * x + y_sq
    grad = t.gradient(z, {"x": x, "y": y})
    assert grad["x"].numpy() == 4.0
    assert (grad["y"] is None) if reset else (grad["y"].numpy() == 6.0)


def test_stop_gradient_cuts_one_path():
    x, y = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as t:
        y_sq = y**2
        z = x**2 + tf.stop_gradient(y_sq)
    grad = t.gradient(z, {"x": x, "y": y})
    assert grad["x"].numpy() == 4.0 and grad["y"] is None


def test_a_gradient_clipped_on_its_way_back(capsys):
    @tf.custom_gradient
    def clip_gradients(y):
        def backward(dy):
            return tf.clip_by_norm(dy, 0.5)

        return y, backward

    v = tf.Variable(2.0)
    with tf.GradientTape() as t:
        output = clip_gradients(v * v)
    print(t.gradient(output, v))
    assert capsys.readouterr().out == "tf.Tensor(2.0, shape=(), dtype=float32)\n"


# -------------------------------------------------------------------- several tapes


def test_two_tapes_watch_two_sources():
    x0, x1 = tf.constant(0.0), tf.constant(0.0)
    with tf.GradientTape() as tape0, tf.GradientTape() as tape1:
        tape0.watch(x0)
        tape1.watch(x1)
        y = tf.math.sin(x0) + tf.nn.sigmoid(x1)
        ys = tf.reduce_sum(y)
    assert tape0.gradient(ys, x0).numpy() == 1.0
    assert tape1.gradient(ys, x1).numpy() == 0.25


def test_a_gradient_inside_an_outer_tape_is_differentiated():
    x = tf.Variable(1.0)
    with tf.GradientTape() as t2:
        with tf.GradientTape() as t1:
            y = x * x * x
        dy_dx = t1.gradient(y, x)
    d2y_dx2 = t2.gradient(dy_dx, x)
    assert f"{dy_dx.numpy()} {d2y_dx2.numpy()}" == "3.0 6.0"


def test_the_size_of_an_input_gradient_is_differentiated_by_the_weights():
    x = tf.random.normal([7, 5])
    layer, kernel, bias = dense(10, tf.nn.relu)
    with tf.GradientTape() as t2:
        with tf.GradientTape(watch_accessed_variables=False) as t1:
            t1.watch(x)
            out = tf.reduce_sum(layer(x) ** 2)
        g1 = t1.gradient(out, x)
        g1_mag = tf.norm(g1)
    dg1_mag = t2.gradient(g1_mag, [kernel, bias])
    assert (
        repr([g.shape for g in dg1_mag]) == "[TensorShape([5, 10]), TensorShape([10])]"
    )

    def magnitude(k, b):  # by hand: g1 = 2 relu(x k + b) k^T
        return np.linalg.norm(2 * np.maximum(x.numpy() @ k + b, 0) @ k.T)

    k, b = kernel.numpy().astype("float64"), bias.numpy().astype("float64")
    for index in [(0, 0), (3, 7)]:
        step = np.zeros_like(k)
        step[index] = 1e-6
        slope = (magnitude(k + step, b) - magnitude(k - step, b)) / 2e-6
        np.testing.assert_allclose(
            dg1_mag[0].numpy()[index], slope, rtol=1e-3, atol=1e-3
        )


# ------------------------------------------------------------------------ Jacobians


def test_a_scalar_source_gives_one_derivative_an_entry(capsys):
    x, delta = tf.linspace(-10.0, 10.0, 200 + 1), tf.Variable(0.0)
    with tf.GradientTape() as tape:
        y = tf.nn.sigmoid(x + delta)
    dy_dx = tape.jacobian(y, delta)
    print(y.shape)
    print(dy_dx.shape)
    assert capsys.readouterr().out == "(201,)\n(201,)\n"
    np.testing.assert_allclose(dy_dx, y.numpy() * (1 - y.numpy()), atol=1e-6)


def test_matplotlib_draws_tensors():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    plt = pytest.importorskip("matplotlib.pyplot")
    x = tf.linspace(-1.0, 1.0, 5)
    y = tf.nn.sigmoid(x)
    image = tf.reshape(y[:4], [2, 2])
    figure = plt.figure()
    try:
        (line,) = plt.plot(x.numpy(), y, label="y")
        np.testing.assert_array_equal(line.get_ydata(), y.numpy())
        lim = tf.reduce_max(abs(image))
        drawn = plt.imshow(image, vmin=-lim, vmax=lim, cmap="seismic",
                           extent=[-0.5, image.shape[1] - 0.5, 1.5, -0.5])  # fmt: skip
        assert drawn.get_clim() == (-float(lim), float(lim))
        np.testing.assert_array_equal(drawn.get_array(), image.numpy())
    finally:
        plt.close(figure)


def test_the_jacobian_by_a_kernel_has_both_shapes_and_sums_to_the_gradient():
    x = tf.random.normal([7, 5])
    layer, kernel, _ = dense(10, tf.nn.relu)
    with tf.GradientTape(persistent=True) as tape:
        y = layer(x)
    assert repr(y.shape) == "TensorShape([7, 10])"
    assert repr(kernel.shape) == "TensorShape([5, 10])"
    j = tape.jacobian(y, kernel)
    assert repr(j.shape) == "TensorShape([7, 10, 5, 10])"
    g = tape.gradient(y, kernel)
    j_sum = tf.reduce_sum(j, axis=[0, 1])
    assert tf.reduce_max(abs(g - j_sum)).numpy() < 1e-3


def test_a_hessian_and_a_step_of_newton():
    x = tf.random.normal([7, 5])
    layer1, kernel, _ = dense(8, tf.nn.relu)
    layer2, _, _ = dense(6, tf.nn.relu, inputs=8)
    with tf.GradientTape() as t2:
        with tf.GradientTape() as t1:
            x = layer1(x)
            x = layer2(x)
            loss = tf.reduce_mean(x**2)
        g = t1.gradient(loss, kernel)
    h = t2.jacobian(g, kernel)
    assert f"{kernel.shape} {h.shape}" == "(5, 8) (5, 8, 5, 8)"
    n_params = tf.reduce_prod(kernel.shape)
    g_vec = tf.reshape(g, [n_params, 1])
    h_mat = tf.reshape(h, [n_params, n_params])
    np.testing.assert_allclose(h_mat, h_mat.numpy().T, atol=1e-5)

    eps = 1e-3
    eye_eps = tf.eye(h_mat.shape[0]) * eps
    update = tf.linalg.solve(h_mat + eye_eps, g_vec)
    expected = np.linalg.solve(
        h_mat.numpy().astype("float64") + eps * np.eye(40), g_vec.numpy()
    )
    np.testing.assert_allclose(update, expected, rtol=0.05, atol=0.05)
    before = kernel.numpy()
    _ = kernel.assign_sub(tf.reshape(update, kernel.shape))
    np.testing.assert_allclose(
        kernel.numpy(), before - update.numpy().reshape(5, 8), rtol=1e-6
    )


@pytest.fixture
def independent():
    """(tape, y, x) of two layers, example by example."""
    x = tf.random.normal([7, 5])
    layer1, _, _ = dense(8, tf.nn.elu)
    layer2, _, _ = dense(6, tf.nn.elu, inputs=8)
    with tf.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch(x)
        y = layer1(x)
        y = layer2(y)
    return tape, y, x


def test_the_jacobian_of_independent_examples_is_diagonal_in_the_batch(independent):
    tape, y, x = independent
    j = tape.jacobian(y, x)
    assert y.shape == (7, 6) and j.shape == (7, 6, 7, 5)
    for a in range(6):
        for b in range(5):
            block = j[:, a, :, b].numpy()
            np.testing.assert_array_equal(block, np.diag(np.diag(block)))


def test_a_batch_jacobian_is_the_diagonal_of_the_full_one(independent):
    tape, y, x = independent
    j = tape.jacobian(y, x)
    j_sum = tf.reduce_sum(j, axis=2)
    j_select = tf.einsum("bxby->bxy", j)
    assert j_sum.shape == j_select.shape == (7, 6, 5)
    jb = tape.batch_jacobian(y, x)
    assert repr(jb.shape) == "TensorShape([7, 6, 5])"
    error = tf.reduce_max(abs(jb - j_sum))
    assert error < 1e-3
    np.testing.assert_allclose(jb, j_select, atol=1e-6)


def test_patches_of_a_jacobian_can_be_put_side_by_side(independent):
    tape, y, x = independent
    j = tf.transpose(tape.jacobian(y, x), [1, 0, 3, 2])
    lim = tf.reduce_max(abs(j))
    padded = tf.pad(j, [[0, 0], [1, 1], [0, 0], [1, 1]], constant_values=-lim)
    s = padded.shape
    image = tf.reshape(padded, [s[0] * s[1], s[2] * s[3]])
    assert image.shape == (6 * 9, 5 * 9)
    assert image[0, 0].numpy() == -lim.numpy()
    np.testing.assert_array_equal(padded[:, 1:-1, :, 1:-1], j)


def test_normalizing_over_the_batch_couples_the_examples():
    x = tf.random.normal([7, 5])
    layer1, _, _ = dense(8, tf.nn.elu)
    layer2, _, _ = dense(6, tf.nn.elu, inputs=8)
    with tf.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch(x)
        y = layer1(x)
        y = tf.nn.fused_batch_norm(y, tf.ones([8]), tf.zeros([8]), [0])[0]
        y = layer2(y)
    j = tape.jacobian(y, x)
    assert f"{j.shape}" == "(7, 6, 7, 5)"
    block = j[:, 0, :, 0].numpy()
    assert np.abs(block - np.diag(np.diag(block))).max() > 1e-3
    jb = tape.batch_jacobian(y, x)
    assert f"{jb.shape}" == "(7, 6, 5)"
    np.testing.assert_allclose(jb, np.einsum("iynx->nyx", j.numpy()), atol=1e-4)
