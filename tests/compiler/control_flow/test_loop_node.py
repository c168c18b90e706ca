"""`Loop`: what a traced loop becomes, and what its gradient keeps and computes."""

import tapewright as tw
from tapewright.compiler.pipeline import optimize

from .programs import network, number, repeated


def nodes_of(f, *args):
    """The nodes that are compiled, by name."""
    graph = optimize(f.get_concrete_function(*args).graph)
    return {node.name: node for node in graph.nodes}


def test_a_loop_of_many_known_steps_is_one_node():
    f = tw.function(lambda x: repeated(100)(x))
    found = nodes_of(f, number(1.0))
    assert list(found) == ["while_loop"]
    assert found["while_loop"].length == 100


def test_a_loop_of_few_known_steps_is_written_out():
    f = tw.function(lambda x: repeated(3)(x))
    assert "while_loop" not in nodes_of(f, number(1.0))


def test_states_are_kept_only_where_the_gradient_needs_them():
    def gradient(f):
        def run(xs):
            with tw.GradientTape() as tape:
                tape.watch(xs)
                y = tw.foldl(f, xs, initializer=1.0)
            return tape.gradient(y, xs)

        return nodes_of(tw.function(run), tw.zeros(9))

    linear = gradient(lambda a, x: a * 0.5 + x)
    assert "foldl" not in linear  # its gradient does not depend on any state
    assert gradient(lambda a, x: a * x)["foldl"].stacked == 1


def test_the_gradient_of_a_recurrent_network_computes_no_state_again():
    xs, h, w = network()

    def run(w):
        with tw.GradientTape() as tape:
            tape.watch(w)
            # The rule of exp needs the new state alone.
            step = lambda h, x: tw.exp(tw.matmul(h, w) + x)  # noqa: E731
            loss = tw.reduce_sum(tw.scan(step, xs, initializer=h))
        return tape.gradient(loss, w)

    back = nodes_of(tw.function(run), w)["scan_gradient"]
    names = [node.name for node in optimize(back.regions[0]).nodes]
    assert "exp" not in names and names.count("matmul") == 2
