"""Tests mirror the tree: the tests of `folder/file.py` are in `folder/test_file.py`.

Files whose logic is tested elsewhere are listed with the tests that cover them. A file
below `SMALL` lines needs no tests of its own.
"""

from pathlib import Path

ROOT = Path(__file__).parent.parent
SMALL = 60
# Folder of the source -> folder of its tests.
MIRRORED = {
    "layers": "tests/layers",
    "optimizers": "tests/optimizers",
    "framework/autodiff": "tests/autodiff",
    "framework/compiler/control_flow": "tests/compiler/control_flow",
    "framework/compiler/function": "tests/compiler/function",
    "framework/compiler/passes": "tests/compiler/passes",
    "framework/data": "tests/data",
    "framework/debugging": "tests/debugging",
    "framework/formats": "tests/formats",
    "framework/inspection": "tests/inspection",
    "framework/keras/applications": "tests/keras/applications",
    "framework/keras/callbacks": "tests/keras/callbacks",
    "framework/keras/files": "tests/keras/files",
    "framework/keras/losses": "tests/keras/losses",
    "framework/keras/metrics": "tests/keras/metrics",
    "framework/keras/models": "tests/keras/models",
    "framework/keras/training": "tests/keras/training",
    "framework/keras/utils": "tests/keras/utils",
    "framework/serialization": "tests/serialization",
    "framework/storage": "tests/storage",
}
RULES = "adafactor adagrad adam ftrl lion muon schedule_free sgd".split()
NETWORKS = """
    convnext densenet efficientnet efficientnet_v2 inception_resnet_v2 inception_v3
    mobilenet mobilenet_v2 mobilenet_v3 nasnet resnet resnet_v2 vgg16 xception
""".split()
AUGMENTATION = """
    box_counts colors elastic filters geometric histograms intensity mixing warping
""".split()
# File -> the tests that cover it, where these have another name.
COVERED = {
    "framework/formats/onnx/graph_writer.py": "tests/formats/onnx/test_save.py",
    "framework/formats/onnx/operands.py": "tests/formats/onnx/test_save.py",
    "framework/formats/onnx/to_onnx/arrays.py": "tests/formats/onnx/test_ops.py",
    "framework/formats/onnx/to_onnx/control_flow.py": "tests/formats/onnx/test_save.py",
    "framework/formats/onnx/to_onnx/elementwise.py": "tests/formats/onnx/test_ops.py",
    "framework/formats/onnx/to_onnx/gradients.py": "tests/formats/onnx/test_ops.py",
    "framework/formats/onnx/to_onnx/products.py": "tests/formats/onnx/test_ops.py",
    "framework/formats/onnx/to_onnx/recurrent.py": "tests/formats/onnx/test_save.py",
    "framework/formats/onnx/to_onnx/reductions.py": "tests/formats/onnx/test_ops.py",
    "framework/formats/onnx/to_onnx/windows.py": "tests/formats/onnx/test_layers.py",
    "layers/rnn/conv_lstm.py": "tests/layers/rnn/test_recurrent.py",
    "layers/base/symbolic_spec.py": "tests/layers/base/test_symbolic_tensor.py",
    "optimizers/base/ops_step.py": "tests/optimizers/base/test_traced_step.py",
    "optimizers/base/rule_step.py": "tests/optimizers/test_interrupts.py",
    # every rule against recordings of Keras
    **{f"optimizers/{rule}.py": "tests/optimizers/test_keras.py" for rule in RULES},
    **{
        f"framework/keras/applications/{name}.py": (
            "tests/keras/applications/test_networks.py"
        )
        for name in NETWORKS
    },
    # every layer against recordings of Keras
    **{
        f"layers/augmentation/{name}.py": (
            "tests/layers/augmentation/test_recorded_augmentation.py"
        )
        for name in AUGMENTATION
    },
    "layers/augmentation/policies.py": "tests/layers/augmentation/test_random_layer.py",
    "layers/base/bounding_boxes.py": "tests/keras/utils/test_bounding_boxes.py",
    "layers/base/image_layer.py": "tests/layers/augmentation/test_random_layer.py",
    "layers/base/spatial.py": "tests/layers/test_convolution.py",
    "layers/preprocessing/index_lookup.py": "tests/layers/preprocessing/test_lookup.py",
    "layers/preprocessing/vocabulary.py": "tests/layers/preprocessing/test_lookup.py",
    "layers/base/input_layer.py": "tests/keras/models/test_functional.py",
    "layers/base/masks.py": "tests/layers/test_core.py",
    "layers/base/layer_dtypes.py": "tests/layers/test_dtype_policies.py",
    "layers/base/layer_types.py": "tests/typing/test_user_code.py",
    "layers/base/saved_layer.py": "tests/keras/files/test_custom_layer_graphs.py",
    "framework/autodiff/confluence.py": "tests/ops/linalg/test_confluent.py",
    **{
        f"framework/compiler/{name}.py": f"tests/{test}.py"
        for name, test in [
            ("control_flow/cond_node", "compiler/control_flow/test_cond"),
            ("control_flow/conjugate_gradient", "ops/linalg/test_lu"),
            ("control_flow/effects", "compiler/control_flow/test_host_calls"),
            ("control_flow/loop_source", "compiler/control_flow/test_while_loop"),
            ("control_flow/regions", "compiler/control_flow/test_while_loop"),
            ("function/coverage", "formats/saved_model/test_functions"),
            ("passes/patterns", "compiler/passes/test_rewrites"),
            ("passes/pooling_passes", "compiler/passes/test_rewrites"),
            ("passes/rewriting", "compiler/passes/test_pipeline"),
        ]
    },
    **{
        f"framework/data/{name}.py": f"tests/data/nodes/test_{test}.py"
        for name, test in [
            ("methods/function_methods", "mapping"),
            ("methods/grouping_methods", "batching"),
            ("methods/selection_methods", "ordering"),
            ("nodes/workers", "parallel"),
            ("resampling", "choosing"),
        ]
    },
    "framework/data/files/element_records.py": "tests/data/files/test_saving.py",
    "framework/data/files/record_files.py": "tests/data/test_file_datasets.py",
    "framework/data/iterator.py": "tests/data/test_positions.py",
    "framework/data/nodes/nesting.py": "tests/data/test_dataset.py",
    "framework/data/nodes/node.py": "tests/data/test_positions.py",
    "framework/data/rng.py": "tests/data/test_runs.py",
    "framework/formats/saved_model/constants.py": (
        "tests/formats/saved_model/test_graph_writer.py"
    ),
    "framework/formats/saved_model/graph_reader.py": (
        "tests/formats/saved_model/test_graph_checks.py"
    ),
    "framework/formats/saved_model/values.py": (
        "tests/formats/saved_model/test_loaded_function.py"
    ),
    **{
        f"framework/formats/onnx/from_onnx/{name}.py": (
            "tests/formats/onnx/test_load_node_cases.py"
        )
        for name in "arithmetic arrays control_flow graph normalization".split()
        + "quantization recurrent reductions resizing static windows".split()
    },
    "framework/formats/onnx/from_onnx/model_file.py": (
        "tests/formats/onnx/test_load_hostile.py"
    ),
    "framework/serialization/shared_layers.py": "tests/keras/files/test_shared_layers.py",
    "framework/storage/records/wav.py": "tests/io/test_audio.py",
    "framework/storage/folders.py": "tests/keras/files/test_save_and_load.py",
    "framework/inspection/report.py": "tests/inspection/test_command.py",
    "framework/inspection/verification.py": "tests/inspection/test_command.py",
    "framework/keras/callbacks/console.py": (
        "tests/keras/callbacks/test_progress_bars.py"
    ),
    "framework/formats/checkpoints/snapshot.py": "tests/formats/checkpoints/test_restoring.py",
    "framework/keras/files/weights/optimizer_state.py": (
        "tests/keras/files/weights/test_weights_by_path.py"
    ),
    "framework/keras/files/class_names.py": "tests/keras/files/test_keras_objects.py",
    "framework/keras/files/weights/weight_assignment.py": (
        "tests/keras/files/weights/test_weights_by_path.py"
    ),
    "framework/keras/metrics/confusion_metric.py": (
        "tests/keras/metrics/test_confusion.py"
    ),
    "framework/keras/metrics/probabilistic.py": (
        "tests/keras/metrics/test_metrics_keras.py"
    ),
    "framework/keras/training/compile_config.py": (
        "tests/keras/files/test_functional_config.py"
    ),
    "framework/keras/training/output_structure.py": (
        "tests/keras/training/test_compile_loss.py"
    ),
    "framework/keras/training/replicas.py": "tests/distribute/test_fit.py",
    "framework/keras/training/several_replicas.py": "tests/distribute/test_fit.py",
    "framework/keras/training/training_state.py": (
        "tests/keras/callbacks/test_backup_and_restore.py"
    ),
    **{
        f"framework/keras/training/data_adapters/{name}.py": (
            "tests/keras/training/test_data_adapters.py"
        )
        for name in (
            "array_adapter data_adapter data_adapter_utils py_dataset_adapter"
        ).split()
    },
    "framework/serialization/configured.py": (
        "tests/layers/base/test_layer_serialization.py"
    ),
    "framework/serialization/constructor_arguments.py": (
        "tests/layers/base/test_layer_serialization.py"
    ),
    "framework/serialization/literals.py": "tests/keras/files/test_keras_objects.py",
    "framework/serialization/load_errors.py": "tests/keras/files/test_keras_objects.py",
    "framework/keras/utils/directory_index.py": (
        "tests/keras/utils/test_directory_datasets.py"
    ),
    "framework/keras/utils/resampling.py": (
        "tests/keras/utils/test_directory_datasets.py"
    ),
    **{
        f"framework/storage/records/{name}.py": "tests/io/test_images.py"
        for name in "bmp gif images png".split()
    },
    "framework/storage/records/paths.py": "tests/io/test_gfile.py",
    "layers/preprocessing/vocabulary_files.py": "tests/layers/preprocessing/test_lookup.py",
    "optimizers/serialization.py": "tests/optimizers/base/test_optimizer.py",
    "framework/storage/global_heap.py": "tests/hostile/test_harmless_texts.py",
}


def mirrored():
    """``(file, its test file)`` of all files with logic in the mirrored folders."""
    for folder, tests in MIRRORED.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            lines = len(path.read_text(encoding="utf-8").splitlines())
            if path.name != "__init__.py" and lines > SMALL:
                inside = path.parent.relative_to(ROOT / folder)
                test = Path(tests) / inside / f"test_{path.name}"
                yield path.relative_to(ROOT).as_posix(), test.as_posix()


def test_every_file_with_logic_has_tests_of_its_name():
    lacking = [
        f"{path}: write {test}, or name in COVERED the tests that cover it"
        for path, test in mirrored()
        if not (ROOT / COVERED.get(path, test)).is_file()
    ]
    assert not lacking, "\n".join(lacking)


def test_no_file_is_listed_as_covered_that_has_tests_of_its_name_or_is_gone():
    tests = dict(mirrored())
    for path in COVERED:
        assert (ROOT / path).is_file(), path
        lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
        assert path in tests or len(lines) <= SMALL, path
        assert path not in tests or not (ROOT / tests[path]).is_file(), path
