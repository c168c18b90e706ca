"""Strategies of one process: their devices."""

import pytest

import tapewright as tw


def test_a_strategy_makes_variables_on_its_device_and_runs_steps_there():
    for strategy in (
        tw.distribute.OneDeviceStrategy("/CPU:0"),
        tw.distribute.MirroredStrategy(devices=["cpu:0"]),
        tw.distribute.MirroredStrategy(cross_device_ops=None),
    ):
        with strategy.scope():
            variable = tw.Variable(2.0)
        product = strategy.run(tw.multiply, args=(tw.constant(3.0), variable))
        assert (float(product), product.device[-5:]) == (6.0, "CPU:0")
        assert strategy.num_replicas_in_sync == 1


def test_ways_of_communication_are_ignored():
    ways = tw.distribute
    for reduce in ways.HierarchicalCopyAllReduce(2), ways.ReductionToOneDevice():
        assert isinstance(reduce, ways.CrossDeviceOps)
        assert ways.MirroredStrategy(cross_device_ops=reduce).num_replicas_in_sync == 1
    nccl = ways.experimental.CommunicationImplementation.NCCL
    options = ways.experimental.CommunicationOptions(implementation=nccl)
    assert ways.MultiWorkerMirroredStrategy(communication_options=options)


def test_bad_devices_are_explained():
    with pytest.raises(ValueError, match="devices must contain one.*mpiexec -n 2"):
        tw.distribute.MirroredStrategy(devices=["/gpu:0", "/gpu:1"])
    with pytest.raises(ValueError, match="device"):
        tw.distribute.OneDeviceStrategy("desk")
