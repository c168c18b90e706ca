"""Programs with Python control flow on tensors, as written for TensorFlow.

Each takes the module (``tensorflow`` or ``tapewright``), and returns arrays.
"""

import numpy as np

__all__ = ["PROGRAMS"]

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


@program
def newton(tf):
    """A root by Newton's method, its number of steps, and derivatives with respect to it."""

    @tf.function
    def root(a, tolerance):
        x, steps = a, 0
        while tf.abs(x * x * x - a) > tolerance:
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = x * x * x - a
            x = x - y / tape.gradient(y, x)
            steps += 1
            if steps >= 50:
                break
        return x, steps

    a = tf.constant(7.0)
    with tf.GradientTape() as outer:
        outer.watch(a)
        with tf.GradientTape() as tape:
            tape.watch(a)
            x, steps = root(a, 1e-4)
        slope = tape.gradient(x, a)
    return [x, steps, slope, outer.gradient(slope, a)]


@program
def line_search(tf):
    """Gradient descent with backtracking on Rosenbrock's function."""

    def f(p):
        return (1.0 - p[0]) ** 2 + 10.0 * (p[1] - p[0] ** 2) ** 2

    @tf.function
    def minimize(p, steps):
        value = f(p)
        for _ in tf.range(steps):
            with tf.GradientTape() as tape:
                tape.watch(p)
                value = f(p)
            g = tape.gradient(value, p)
            rate = 1.0
            while tf.constant(True):  # TensorFlow refuses a plain True
                if f(p - rate * g) < value - 0.25 * rate * tf.reduce_sum(g * g):
                    break
                rate *= 0.5
                if rate < 1e-6:
                    break
            p = p - rate * g
        return p, value

    return minimize(tf.constant([-0.5, 1.0]), tf.constant(25))


@program
def actor_critic(tf):
    """An episode of a cart that a linear policy pushes, its returns, and a step by them."""
    rng = np.random.default_rng(0)
    weights = tf.Variable(rng.normal(size=(4, 3)).astype("float32"))

    def env_step(action, state):
        position, speed, angle, spin = state
        force = 1.0 if action == 1 else -1.0
        spin = spin + 0.05 * (np.sin(angle) + force * np.cos(angle))
        state = np.array([position + 0.1 * speed, speed + 0.1 * force,
                          angle + 0.1 * spin, spin], np.float32)  # fmt: skip
        done = abs(state[0]) > 1.0 or abs(state[2]) > 0.5
        return state, np.array(1, np.int32), np.array(done, np.int32)

    def tf_env_step(action, state):
        return tf.numpy_function(
            env_step, [action, state], [tf.float32, tf.int32, tf.int32]
        )

    def run_episode(initial_state, max_steps):
        probs = tf.TensorArray(dtype=tf.float32, size=0, dynamic_size=True)
        values = tf.TensorArray(dtype=tf.float32, size=0, dynamic_size=True)
        rewards = tf.TensorArray(dtype=tf.int32, size=0, dynamic_size=True)
        state, shape = initial_state, initial_state.shape
        for t in tf.range(max_steps):
            outputs = tf.linalg.matvec(tf.transpose(weights), state)
            logits, value = outputs[:2], outputs[2]
            action = tf.argmax(logits)
            values = values.write(t, value)
            probs = probs.write(t, tf.nn.softmax(logits)[action])
            state, reward, done = tf_env_step(action, state)
            state.set_shape(shape)
            rewards = rewards.write(t, reward)
            if tf.cast(done, tf.bool):
                break
        return probs.stack(), values.stack(), rewards.stack()

    def expected_return(rewards, gamma):
        n = tf.shape(rewards)[0]
        returns = tf.TensorArray(dtype=tf.float32, size=n)
        rewards = tf.cast(rewards[::-1], dtype=tf.float32)
        discounted = tf.constant(0.0)
        shape = discounted.shape
        for i in tf.range(n):
            discounted = rewards[i] + gamma * discounted
            discounted.set_shape(shape)
            returns = returns.write(i, discounted)
        return returns.stack()[::-1]

    @tf.function
    def train_step(initial_state, gamma, max_steps):
        with tf.GradientTape() as tape:
            probs, values, rewards = run_episode(initial_state, max_steps)
            advantage = expected_return(rewards, gamma) - values
            actor = -tf.reduce_sum(tf.math.log(probs) * tf.stop_gradient(advantage))
            loss = actor + tf.reduce_sum(advantage**2)
        gradient = tape.gradient(loss, weights)
        weights.assign_sub(0.001 * gradient)
        return loss, tf.reduce_sum(rewards)

    start = tf.constant([0.0, 0.1, 0.05, 0.0])
    results = [train_step(start, 0.95, 60) for _ in range(3)]
    return [x for pair in results for x in pair] + [weights]


@program
def image_to_image(tf):
    """The loop of a conditional GAN, with a schedule inside, over a data set."""
    rng = np.random.default_rng(1)
    x, y = [rng.normal(size=(12, 6)).astype("float32") for _ in range(2)]
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(3, drop_remainder=True)
    of_generator = tf.Variable(0.1 * rng.normal(size=(6, 6)).astype("float32"))
    of_critic = tf.Variable(0.1 * rng.normal(size=(12, 1)).astype("float32"))
    history = tf.Variable(tf.zeros([2]))

    def critic(a, b):
        return tf.concat([a, b], 1) @ of_critic

    @tf.function
    def fit(dataset, steps):
        for step, (a, b) in dataset.repeat().take(steps).enumerate():
            with tf.GradientTape() as gen_tape, tf.GradientTape() as disc_tape:
                fake = tf.tanh(a @ of_generator)
                real_score, fake_score = critic(a, b), critic(a, fake)
                gen_loss = tf.reduce_mean(tf.nn.softplus(-fake_score))
                if step % 3 == 0:
                    gen_loss += 10.0 * tf.reduce_mean(tf.abs(b - fake))
                disc_loss = tf.reduce_mean(
                    tf.nn.softplus(-real_score) + tf.nn.softplus(fake_score)
                )
            of_generator.assign_sub(0.1 * gen_tape.gradient(gen_loss, of_generator))
            if step < 6:
                of_critic.assign_sub(0.1 * disc_tape.gradient(disc_loss, of_critic))
            elif disc_loss < 0.1:
                break
            history.assign(tf.stack([gen_loss, disc_loss]))

    fit(data, 10)
    return [of_generator, of_critic, history]


@program
def beam_search(tf):
    """The best sequences of a table of transitions, until all have ended."""
    rng = np.random.default_rng(2)
    table = tf.constant(np.log(rng.dirichlet(np.ones(6), 6)).astype("float32"))
    beams, end = 3, 0

    @tf.function
    def search(table, max_length):
        sequences = tf.zeros([beams, 8], tf.int32)
        scores = tf.constant([0.0, -1e9, -1e9])
        tokens, finished = tf.ones([beams], tf.int32), tf.zeros([beams], tf.bool)
        length = 0
        while length < max_length and not tf.reduce_all(finished):
            step = tf.gather(table, tokens)
            stay = tf.one_hot(tf.fill([beams], end), 6, on_value=0.0, off_value=-1e9)
            step = tf.where(finished[:, None], stay, step)
            best, places = tf.math.top_k(
                tf.reshape(scores[:, None] + step, [-1]), beams
            )
            parents, tokens = places // 6, places % 6
            sequences = tf.gather(sequences, parents)
            column = tf.one_hot(length, 8, dtype=tf.int32)
            sequences = sequences * (1 - column) + tokens[:, None] * column
            finished = tf.logical_or(tf.gather(finished, parents), tokens == end)
            scores = best
            length += 1
        return sequences, scores, length

    return search(table, tf.constant(8))


@program
def decoder(tf):
    """Greedy decoding into a `TensorArray`, with a cell that attends to what it has seen."""
    rng = np.random.default_rng(3)
    cell = tf.constant(rng.normal(size=(8, 8)).astype("float32"))
    out = tf.constant(rng.normal(size=(8, 5)).astype("float32"))
    embedding = tf.constant(rng.normal(size=(5, 8)).astype("float32"))

    @tf.function
    def decode(state, max_length):
        result = tf.TensorArray(tf.int32, size=10, element_shape=[])
        token = tf.constant(1)
        for t in tf.range(max_length):
            state = tf.tanh(tf.linalg.matvec(cell, state) + embedding[token])
            logits = tf.linalg.matvec(tf.transpose(out), state)
            token = tf.argmax(logits, output_type=tf.int32)
            if token == 4 and t > 3:
                break
            result = result.write(t, token)
        return result.stack(), state

    return decode(tf.ones([8]), tf.constant(10))


@program
def dynamic_rnn(tf):
    """A recurrence that stops at the length of each sequence, and its gradient."""
    rng = np.random.default_rng(4)
    inputs = tf.constant(rng.normal(size=(3, 5, 4)).astype("float32"))
    kernel = tf.Variable(rng.normal(size=(4, 4)).astype("float32"))
    lengths = tf.constant([5, 2, 3])

    @tf.function
    def run(inputs, lengths):
        steps = tf.shape(inputs)[1]
        outputs = tf.TensorArray(tf.float32, size=steps)
        state = tf.zeros([3, 4])
        for t in tf.range(steps):
            new = tf.tanh(inputs[:, t] + state @ kernel)
            state = tf.where((t < lengths)[:, None], new, state)
            outputs = outputs.write(t, state)
        return tf.transpose(outputs.stack(), [1, 0, 2]), state

    with tf.GradientTape() as tape:
        outputs, state = run(inputs, lengths)
        loss = tf.reduce_sum(outputs**2) + tf.reduce_sum(state)
    return [outputs, state, tape.gradient(loss, kernel)]


@program
def game_of_life(tf):
    """Generations of a torus, until nothing changes."""

    @tf.function
    def run(board, limit):
        generation = 0
        for generation in tf.range(limit):  # noqa: B007  (used behind the loop)
            count = tf.zeros_like(board)
            for shift in range(-1, 2):
                for turn in range(-1, 2):
                    if shift or turn:
                        count += tf.roll(board, [shift, turn], [0, 1])
            alive = tf.logical_or(count == 3, tf.logical_and(board == 1, count == 2))
            after = tf.cast(alive, tf.int32)
            if tf.reduce_all(after == board):
                break
            board = after
        return board, generation

    start = np.zeros((8, 8), np.int32)
    start[3, 2:6] = start[4, 3] = 1
    return run(tf.constant(start), tf.constant(40))


@program
def collatz(tf):
    """Nested loops with continue, and a while with an else."""

    @tf.function
    def longest(limit):
        best, length = 0, 0
        for n in tf.range(1, limit):
            if n % 2 == 0 and n % 3 == 0:
                continue
            x, steps = n, 0
            while x != 1:
                x = x // 2 if x % 2 == 0 else 3 * x + 1
                steps += 1
                if steps > 100:
                    break
            if steps > length:
                best, length = n, steps
        return best, length

    return longest(tf.constant(60))


@program
def sieve(tf):
    """Primes by trial, in a function of its own with several returns."""

    def is_prime(n):
        if n < 2:
            return False
        d = 2
        while d * d <= n and n % d != 0:
            d += 1
        return d * d > n

    @tf.function
    def count(limit):
        total = 0
        for n in tf.range(limit):
            if is_prime(n):
                total += 1
        return total

    return [count(tf.constant(60))]


@program
def clipped_layers(tf):
    """Methods, attributes and closures: a module whose call branches."""

    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            rng = np.random.default_rng(5)
            self.kernels = [
                tf.Variable(rng.normal(size=(4, 4)).astype("float32")) for _ in range(3)
            ]
            self.calls = tf.Variable(0)

        def scaled(self, x):
            norm = tf.norm(x)
            return x / norm if norm > 2.0 else x

        @tf.function
        def __call__(self, x, training):
            self.calls.assign_add(1)
            for i, kernel in enumerate(self.kernels):
                x = self.scaled(tf.tanh(x @ kernel))
                if training and i < 2:
                    x = x * 0.5
                elif not training and 0.0 < tf.reduce_sum(x) < 10.0:
                    x = -x
            return x

    net = Net()
    x = tf.constant(np.linspace(-2, 2, 8).reshape(2, 4).astype("float32"))
    found = []
    for training in (True, False):
        with tf.GradientTape() as tape:
            y = net(x, training)
        found += [y, *tape.gradient(y, net.kernels)]
    return [*found, net.calls]


@program
def zigzag(tf):
    """Sums over the rows of a tensor, with break."""

    @tf.function
    def run(x, y):
        total = tf.constant(0.0)
        i = 0
        for row in tf.stack([x, y], 1):
            a, b = row[0], row[1]
            i += 1
            if a > b:
                total += a * tf.cast(i, tf.float32)
            elif i > 4:
                break
            else:
                total -= b
        return total

    x = tf.constant([1.0, 5.0, -2.0, 4.0, 0.0, 9.0])
    y = tf.constant([2.0, 3.0, -5.0, 5.0, 1.0, 1.0])
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        total = run(x, y)
    return [total, *tape.gradient(total, [x, y])]


@program
def fizzbuzz(tf):
    """A chain of elif, collected as numbers."""

    @tf.function
    def run(n):
        codes = tf.TensorArray(tf.int32, size=20)
        for i in tf.range(1, n + 1):
            if i % 15 == 0:
                code = -3
            elif i % 3 == 0:
                code = -1
            elif i % 5 == 0:
                code = -2
            else:
                code = i
            codes = codes.write(i - 1, code)
        return codes.stack()

    return [run(tf.constant(20))]
