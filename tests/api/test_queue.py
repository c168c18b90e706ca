"""`tw.queue`: order, batches, closing and waiting as in TensorFlow."""

import threading

import pytest

import tapewright as tw
from tapewright.queue import (
    FIFOQueue,
    PaddingFIFOQueue,
    PriorityQueue,
    RandomShuffleQueue,
)


def test_elements_come_in_order_alone_and_in_batches():
    queue = FIFOQueue(10, ["int32", "float32"], shapes=[[], [2]])
    queue.enqueue((1, [1.0, 2.0]))
    queue.enqueue_many(([2, 3], [[1.0, 2.0], [3.0, 4.0]]))
    assert queue.size().numpy() == 3 and queue.size().dtype == tw.int32
    assert [x.numpy().tolist() for x in queue.dequeue()] == [1, [1.0, 2.0]]
    numbers, rows = queue.dequeue_many(2)
    assert numbers.numpy().tolist() == [2, 3]
    assert rows.numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_one_component_is_a_tensor_and_named_ones_a_dict():
    queue = FIFOQueue(3, tw.int32)
    queue.enqueue(1)
    queue.enqueue([2])
    assert [queue.dequeue().numpy(), queue.dequeue().numpy()] == [1, 2]
    queue = FIFOQueue(3, tw.float32, names=["a"])
    queue.enqueue({"a": 1.5})
    assert queue.dequeue()["a"].numpy() == 1.5


def test_a_closed_queue_gives_the_rest():
    queue = FIFOQueue(5, "int32", shapes=[()])
    queue.enqueue_many([[1, 2]])
    queue.close()
    assert queue.is_closed().numpy()
    with pytest.raises(tw.errors.CancelledError, match="the queue is closed"):
        queue.enqueue(3)
    with pytest.raises(tw.errors.OutOfRangeError, match="2 elements, fewer than 3"):
        queue.dequeue_many(3)
    assert queue.dequeue_up_to(5).numpy().tolist() == [1, 2]
    with pytest.raises(tw.errors.OutOfRangeError):
        queue.dequeue()


def test_threads_wait_for_room_and_for_elements():
    queue, found = FIFOQueue(1, "int32"), []

    def produce():
        for i in range(5):
            queue.enqueue(i)
        queue.close()

    thread = threading.Thread(target=produce)
    thread.start()
    with pytest.raises(tw.errors.OutOfRangeError):
        while True:
            found.append(int(queue.dequeue()))
    thread.join()
    assert found == [0, 1, 2, 3, 4]


def test_waiting_for_room_can_be_cancelled():
    queue, errors = FIFOQueue(1, "int32"), []
    queue.enqueue(1)

    def produce():
        with pytest.raises(tw.errors.CancelledError) as error:
            queue.enqueue(2)
        errors.append(error)

    thread = threading.Thread(target=produce)
    thread.start()
    queue.close(cancel_pending_enqueues=True)
    thread.join()
    assert len(errors) == 1 and queue.size().numpy() == 1


def test_a_shuffled_queue_keeps_some_until_it_is_closed():
    orders = []
    for _ in range(2):
        queue = RandomShuffleQueue(10, 2, "int32", shapes=[()], seed=1)
        queue.enqueue_many([[1, 2, 3, 4, 5]])
        order = queue.dequeue_many(3).numpy().tolist()
        queue.close()
        orders.append(order + queue.dequeue_many(2).numpy().tolist())
    assert orders[0] == orders[1] and sorted(orders[0]) == [1, 2, 3, 4, 5]


def test_priorities_order_and_padding_fills():
    queue = PriorityQueue(10, [tw.string], [()])
    for priority, text in (3, "c"), (1, "a"), (1, "b"):
        queue.enqueue((priority, text))
    assert [queue.dequeue()[1].numpy() for _ in range(3)] == [b"a", b"b", b"c"]
    queue = PaddingFIFOQueue(10, [tw.int32], [[None]])
    queue.enqueue([[1]])
    queue.enqueue([[1, 2, 3]])
    assert queue.dequeue_many(2).numpy().tolist() == [[1, 0, 0], [1, 2, 3]]


def test_functions_use_a_queue_in_every_call():
    queue = FIFOQueue(10, "int32")

    @tw.function
    def f(x):
        queue.enqueue(x)
        queue.enqueue(x + 1)
        return queue.dequeue()

    assert [f(tw.constant(3)).numpy() for _ in range(3)] == [3, 4, 3]
    assert queue.size().numpy() == 3


@pytest.mark.parametrize("call, message", [
    (lambda q: q.enqueue(1), "must have 2 components.*got 1"),
    (lambda q: q.enqueue((1, [1.0])), "must have the shapes .*got .*1,"),
    (lambda q: q.enqueue((1.5, [1.0, 2.0])), "1.5 to int32"),
    (lambda q: q.enqueue_many((1, [1.0, 2.0])), "must have an axis of elements"),
    (lambda q: q.enqueue_many(([1], [[1.0, 2.0]] * 2)), "must have one first size"),
    (lambda q: q.enqueue({"a": 1}), "vals must be a tensor or a list"),
    (lambda q: q.dequeue_many(4), "n must be at most the 3 elements.*got 4"),
    (lambda q: FIFOQueue(3, "int32").dequeue_many(1), "must have shapes to stack"),
    (lambda q: FIFOQueue(3, ["int32"] * 2, shapes=[()]), "one for each of the 2 dtypes"),
    (lambda q: FIFOQueue(3, "int32", shared_name="q"), "shared_name must be None"),
    (lambda q: RandomShuffleQueue(3, 3, "int32"), "min_after_dequeue must be at most 2"),
])  # fmt: skip
def test_what_does_not_fit_is_named(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call(FIFOQueue(3, ["int32", "float32"], shapes=[(), (2,)]))
