"""`tw.summary.trace_on`: graphs that TensorBoard reads, and a profile beside them."""

import json

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto.config_pb2 import RunMetadata
from tensorboard.compat.proto.graph_pb2 import GraphDef

import tapewright as tw


@pytest.fixture
def writer(tmp_path):
    made = tw.summary.create_file_writer(tmp_path)
    with made.as_default():
        yield made
    made.close()


@pytest.fixture(autouse=True)
def off():
    yield
    tw.summary.trace_off()


def exported(writer, folder, tag="run"):
    """The graphs, the step and the plugin of the trace under a tag."""
    writer.flush()
    read = EventAccumulator(str(folder)).Reload()
    (event,) = read.Tensors(tag)
    metadata = RunMetadata.FromString(event.tensor_proto.string_val[0])
    graphs = [each.pre_optimization_graph for each in metadata.function_graphs]
    return graphs, event.step, read.SummaryMetadata(tag).plugin_data.plugin_name


def nodes(graph):
    return {node.name: (node.op, list(node.input)) for node in graph.node}


def test_the_graphs_of_functions_that_run_are_exported(writer, tmp_path):
    scale = tw.Variable(3.0, name="scale")

    @tw.function
    def inner(x):
        return tw.exp(x) * scale

    @tw.function
    def outer(x):
        low, high = tw.split(inner(x), 2)
        return high - low if tw.reduce_sum(x) > 0.0 else high

    inner(tw.zeros([2]))  # before
    tw.summary.trace_on()
    for _ in range(2):
        outer(tw.constant([1.0, 2.0]))
    tw.summary.trace_export("run", step=3)
    outer(tw.zeros([4]))  # afterwards
    (graph,), step, plugin = exported(writer, tmp_path)
    assert (step, plugin) == (3, "graph_run_metadata_graph")
    found = nodes(graph)
    assert found["x"] == ("_Arg", [])
    assert found["scale"] == ("ReadVariableOp", [])
    assert found["exp_0"] == ("Exp", ["x"])
    assert found["multiply_2"] == ("Mul", ["exp_0", "scale"])
    assert found["greater_5/input_1"] == ("Const", [])
    op, inputs = found["if_7"]
    assert op == "If" and {"split_3", "split_3:1"} < set(inputs)
    assert {op for name, (op, _) in found.items() if name.startswith("if_7/")} == {
        "Sub", "_Arg", "_Retval",
    }  # fmt: skip
    assert found["output_0"] == ("_Retval", ["if_7"])
    names = {name.partition(":")[0] for _, inputs in found.values() for name in inputs}
    assert names <= set(found)


def test_dtypes_and_shapes_are_those_of_values(writer, tmp_path):
    signature = [tw.TensorSpec([None, 2], tw.int64)]
    f = tw.function(lambda x: tw.cast(x, tw.bfloat16), input_signature=signature)
    assert tw.summary.graph(f.get_concrete_function().graph).numpy()
    writer.flush()
    graph = GraphDef.FromString(EventAccumulator(str(tmp_path)).Reload()._graph)
    types = {node.op: node.attr["T"].type for node in graph.node}
    assert (types["_Arg"], types["_Retval"]) == (9, 14)
    (shape,) = graph.node[0].attr["_output_shapes"].list.shape
    assert [dim.size for dim in shape.dim] == [-1, 2]


def test_a_profile_is_written_into_its_folder(writer, tmp_path):
    f = tw.function(tw.exp)
    for where in ({"on": tmp_path / "a"}, {"export": tmp_path / "b"}):
        tw.summary.trace_on(profiler=True, profiler_outdir=where.get("on"))
        f(tw.zeros([3]))
        name = "".join(where)
        tw.summary.trace_export(name, 0, profiler_outdir=where.get("export"))
        (folder,) = where.values()
        trace = json.loads((folder / "trace.json").read_text())
        kinds = {event.get("cat") for event in trace["traceEvents"]}
        assert not kinds.isdisjoint({"replay", "op"})  # on a GPU, op by op
        graphs, _, plugin = exported(writer, tmp_path, name)
        assert len(graphs) == 1 and plugin == "graph_run_metadata"


def test_a_profile_without_a_folder_is_dropped_with_a_warning(writer, tmp_path):
    tw.summary.trace_on(profiler=True)
    with pytest.warns(UserWarning, match="pass profiler_outdir here or to trace_on"):
        tw.summary.trace_export("run", step=0)
    assert [path.suffix for path in tmp_path.iterdir()] == [".v2"]


def test_a_trace_that_is_off_notes_nothing(writer, tmp_path):
    f = tw.function(tw.exp)
    tw.summary.trace_off()
    tw.summary.trace_on(profiler=True, profiler_outdir=tmp_path / "dropped")
    f(1.0)
    tw.summary.trace_off()
    assert not (tmp_path / "dropped").exists()
    with pytest.raises(ValueError, match="no trace is active"):
        tw.summary.trace_export("run", step=0)
    tw.summary.trace_on(graph=False)
    f(1.0)
    with pytest.raises(ValueError, match="step must be set"):
        tw.summary.trace_export("run")
    tw.summary.trace_export("run", step=0)
    assert exported(writer, tmp_path)[0] == []


def test_a_second_trace_and_one_in_a_function_are_not_started(writer, tmp_path):
    with pytest.warns(UserWarning, match="ignored in a traced function"):
        tw.function(lambda x: tw.summary.trace_on() or x)(1.0)
    with pytest.raises(ValueError, match="no trace is active"):
        tw.summary.trace_export("run", step=0)
    tw.summary.trace_on()
    with pytest.warns(UserWarning, match="a trace is already active"):
        tw.summary.trace_on(profiler=True)
    with pytest.raises(TypeError, match="graph_data must be the graph .* got int"):
        tw.summary.graph(1)


def test_without_a_default_writer_a_trace_ends():
    tw.summary.trace_on()
    tw.summary.trace_export("run")
    assert not tw.summary.graph(tw.function(tw.exp).get_concrete_function(1.0).graph)
    with pytest.raises(ValueError, match="no trace is active"):
        tw.summary.trace_export("run")
