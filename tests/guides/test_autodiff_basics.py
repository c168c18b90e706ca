"""What the articles on GradientTape and its API page show, and quietly depend on."""

import numpy as np
import pytest

import tapewright as tf

# ------------------------------------------------------------------- the API page


def test_the_first_example():
    x = tf.constant(3.0)
    with tf.GradientTape() as g:
        g.watch(x)
        y = x * x
    assert g.gradient(y, x).numpy() == 6.0


def test_nested_tapes():
    x = tf.constant(3.0)
    with tf.GradientTape() as g:
        g.watch(x)
        with tf.GradientTape() as gg:
            gg.watch(x)
            y = x * x
        dy_dx = gg.gradient(y, x)
    assert (dy_dx.numpy(), g.gradient(dy_dx, x).numpy()) == (6.0, 2.0)


def test_a_persistent_tape():
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as g:
        g.watch(x)
        y = x * x
        z = y * y
    assert g.gradient(z, x).numpy() == 108.0
    assert g.gradient(y, x).numpy() == 6.0
    del g


def test_variables_that_do_not_exist_yet_are_not_watched():
    kernels = []

    def build_and_call(x):
        if not kernels:
            kernels.append(tf.Variable(tf.ones([2, 2])))
        return tf.matmul(x, kernels[0])

    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(kernels)  # an empty list
        result = build_and_call(tf.ones([1, 2]))
    assert tape.gradient(result, kernels) == [None]


def test_a_loss_before_a_reset_does_not_count():
    x = tf.Variable(2.0)
    with tf.GradientTape() as t:
        loss = x * x
        t.reset()
        loss += x * 3.0
    assert t.gradient(loss, x).numpy() == 3.0


# -------------------------------------------------------------- the articles


def test_the_gradient_by_a_dense_kernel_has_its_shape():
    w = tf.Variable(tf.random.normal((3, 2)), name="w")
    b = tf.Variable(tf.zeros(2), name="b")
    x = [[1.0, 2.0, 3.0]]
    with tf.GradientTape(persistent=True) as tape:
        y = x @ w + b
        loss = tf.reduce_mean(y**2)
    dl_dw, dl_db = tape.gradient(loss, [w, b])
    assert dl_dw.shape == (3, 2)
    np.testing.assert_allclose(dl_db, y.numpy()[0], rtol=1e-6)
    np.testing.assert_allclose(dl_dw, np.outer(x[0], y.numpy()[0]), rtol=1e-6)
    by_name = tape.gradient(loss, {"w": w, "b": b})
    np.testing.assert_array_equal(by_name["b"], dl_db)


def test_a_vector_target_is_summed():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * [3.0, 4.0]
    assert tape.gradient(y, x).numpy() == 7.0


def test_what_is_and_is_not_watched():
    x0 = tf.Variable(3.0, name="x0")
    x1 = tf.Variable(3.0, name="x1", trainable=False)
    x2 = tf.Variable(2.0, name="x2") + 1.0
    x3 = tf.constant(3.0, name="x3")
    with tf.GradientTape() as tape:
        y = (x0**2) + (x1**2) + (x2**2)
    grad = tape.gradient(y, [x0, x1, x2, x3])
    assert grad[0].numpy() == 6.0 and grad[1:] == [None, None, None]
    assert [v.name for v in tape.watched_variables()] == ["x0"]


def test_an_intermediate_result_has_a_gradient():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        z = y * y
    assert tape.gradient(z, y).numpy() == 18.0


def test_branches_record_what_ran():
    x, v0, v1 = tf.constant(1.0), tf.Variable(2.0), tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        result = v0 if x > 0.0 else v1**2
    by_v0, by_v1 = tape.gradient(result, [v0, v1])
    assert by_v0.numpy() == 1.0 and by_v1 is None
    assert tape.gradient(result, x) is None


def test_a_stable_logarithm_where_the_plain_one_gives_nan_or_its_limit():
    def plain(x):
        return tf.math.log(1 + tf.exp(x))

    @tf.custom_gradient
    def stable(x):
        e = tf.exp(x)
        return tf.math.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))

    x = tf.Variable(100.0)
    with tf.GradientTape(persistent=True) as tape:
        y, z = plain(x), stable(x)
    assert not tape.gradient(y, x).numpy() == 1.0
    assert tape.gradient(z, x).numpy() == 1.0


def test_a_step_through_numpy_is_not_seen():
    x = tf.Variable([[1.0, 2.0], [3.0, 4.0]], dtype=tf.float32)
    with tf.GradientTape() as tape:
        x2 = x**2
        y = np.mean(x2, axis=0)
        y = tf.reduce_mean(y, axis=0)
    assert tape.gradient(y, x) is None


def test_integers_have_no_gradient_and_the_tape_says_so():
    x = tf.constant(10)
    with tf.GradientTape() as g:
        with pytest.warns(UserWarning, match="int32"):
            g.watch(x)
        y = x * x
    assert g.gradient(y, x) is None


def test_a_variable_overwritten_by_a_tensor_loses_its_gradient():
    x, found = tf.Variable(2.0), []
    for _ in range(2):
        with tf.GradientTape() as tape:
            y = x + 1
        found.append((type(x).__name__, tape.gradient(y, x)))
        x = x + 1
    assert [kind for kind, _ in found] == ["Variable", "Tensor"]
    assert found[0][1].numpy() == 1.0 and found[1][1] is None


def test_a_state_that_was_assigned_hides_where_it_came_from():
    x0, x1 = tf.Variable(3.0), tf.Variable(0.0)
    with tf.GradientTape() as tape:
        x1.assign_add(x0)
        y = x1**2
    assert tape.gradient(y, x0) is None
    with tf.GradientTape() as tape:
        y = (x1 + x0) ** 2
    assert tape.gradient(y, x0).numpy() == 12.0


def test_an_op_without_gradient_is_a_lookup_error():
    image = tf.Variable([[[0.5, 0.0, 0.0]]])
    delta = tf.Variable(0.1)
    with tf.GradientTape() as tape:
        new_image = tf.image.adjust_contrast(image, delta)
    with pytest.raises(LookupError, match="No gradient defined for operation"):
        tape.gradient(new_image, [image, delta])


def test_zeros_instead_of_none():
    x, y = tf.Variable([2.0, 2.0]), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        z = y**2
    zero = tape.gradient(z, x, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    assert str(zero) == "tf.Tensor([0. 0.], shape=(2,), dtype=float32)"


def test_a_hessian_through_indices():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape2:
        with tf.GradientTape() as tape1:
            y = x[0] ** 2 + x[1] ** 2
        grad = tape1.gradient(y, x)
    np.testing.assert_array_equal(tape2.jacobian(grad, x), [[2.0, 0.0], [0.0, 2.0]])


def test_a_gradient_is_clipped_and_scaled():
    w, x, y_true = tf.Variable([[3.0], [4.0]]), tf.constant([[1.0, 2.0]]), [[3.0]]
    with tf.GradientTape() as tape:
        y_pred = tf.matmul(x, w)
        loss = tf.reduce_mean(tf.square(y_true - y_pred))
    grads = tape.gradient(loss, w)
    np.testing.assert_allclose(grads, [[16.0], [32.0]])
    clipped = tf.clip_by_norm(grads, 1.0)
    np.testing.assert_allclose(
        clipped, np.array([[1.0], [2.0]]) / np.sqrt(5), rtol=1e-6
    )
    scaled = [g * 0.5 for g in grads]  # row by row
    np.testing.assert_allclose([s.numpy() for s in scaled], [[8.0], [16.0]])


def test_a_jacobian_of_stacked_entries():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = tf.stack([x[0] ** 2, x[1] ** 3])
    np.testing.assert_allclose(tape.jacobian(y, x), [[2.0, 0.0], [0.0, 12.0]])
    v = tf.constant([1.0, 1.0])
    np.testing.assert_allclose(tape.gradient(y, x, output_gradients=v), [2.0, 12.0])


def test_two_losses_of_one_persistent_tape():
    w, x = tf.Variable([[1.0], [1.0]]), tf.constant([[1.0, 2.0]])
    with tf.GradientTape(persistent=True) as tape:
        y_pred = tf.matmul(x, w)
        loss1 = tf.reduce_mean(tf.square([[3.0]] - y_pred))
        loss2 = tf.reduce_mean(tf.square([[4.0]] - y_pred))
    np.testing.assert_array_equal(tape.gradient(loss1, w), [[0.0], [0.0]])
    np.testing.assert_array_equal(tape.gradient(loss2, w), [[-2.0], [-4.0]])
    del tape


class MLP(tf.Module):
    def __init__(self, inputs, hidden, outputs):
        self.w1 = tf.Variable(tf.random.normal([inputs, hidden]) * 0.3)
        self.b1 = tf.Variable(tf.zeros([hidden]))
        self.w2 = tf.Variable(tf.random.normal([hidden, outputs]) * 0.3)
        self.b2 = tf.Variable(tf.zeros([outputs]))

    def __call__(self, x):
        h1 = tf.nn.relu(tf.matmul(x, self.w1) + self.b1)
        return tf.matmul(h1, self.w2) + self.b2


def test_a_loop_of_clipped_steps_learns():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(4, 6)) * 2
    labels = rng.integers(0, 4, 128)
    x = (centres[labels] + 0.3 * rng.normal(size=(128, 6))).astype("float32")
    y = tf.one_hot(labels, 4)
    model = MLP(6, 16, 4)
    losses = []
    for _ in range(60):
        with tf.GradientTape(persistent=True) as tape:
            logits = model(x)
            loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(y, logits))
            penalty = tf.reduce_sum(tf.square(model.w1)) + tf.reduce_sum(
                tf.square(model.w2)
            )
            total = loss + 1e-4 * penalty
        variables = [model.w1, model.b1, model.w2, model.b2]
        for v, g in zip(variables, tape.gradient(total, variables), strict=True):
            v.assign_sub(0.5 * tf.clip_by_norm(g, 1.0))
        del tape
        losses.append(loss.numpy())
    assert losses[-1] < 0.1 < losses[0]
    assert (np.argmax(model(x), axis=1) == labels).mean() > 0.97


def test_two_networks_are_trained_from_one_tape():
    generator, discriminator = MLP(3, 8, 4), MLP(4, 8, 1)
    x, z = tf.random.normal([16, 4]), tf.random.normal([16, 3])

    def cross_entropy(labels, logits):
        return tf.reduce_mean(
            tf.nn.sigmoid_cross_entropy_with_logits(labels(logits), logits)
        )

    with tf.GradientTape(persistent=True) as tape:
        fake = discriminator(generator(z))
        real = discriminator(x)
        g_loss = cross_entropy(tf.ones_like, fake)
        d_loss = cross_entropy(tf.ones_like, real) + cross_entropy(tf.zeros_like, fake)
    g_vars, d_vars = generator.trainable_variables, discriminator.trainable_variables
    g_grads, d_grads = tape.gradient(g_loss, g_vars), tape.gradient(d_loss, d_vars)
    for v, g in zip((*g_vars, *d_vars), (*g_grads, *d_grads), strict=True):
        assert g.shape == v.shape and np.isfinite(g.numpy()).all()
    # the last bias of the discriminator moves both losses: (sigmoid - label), averaged
    s_fake, s_real = (1 / (1 + np.exp(-t.numpy())) for t in (fake, real))
    np.testing.assert_allclose(
        tape.gradient(d_loss, discriminator.b2),
        [(s_fake + s_real - 1).mean()],
        rtol=1e-4,
    )
    assert f"{g_loss.numpy():.4f}" == f"{float(g_loss):.4f}"
