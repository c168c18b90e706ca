"""Keras' files, both ways: ``.weights.h5``, ``.h5`` and ``.keras``.

call_arguments    arguments of the calls in a model as JSON
operations        operations between layers: Keras' classes, and back
keras_objects     objects as Keras writes them down: ``keras.saving``
functional_config   layers and the calls between them
strip_defaults    configs without what the constructors would assume
keras2_configs    configs of Keras 2, and of other dtypes, as those of Keras 3; and back
keras2_functions   functions of Keras 2 between layers, as those of Keras 3
limits            limits of the config of a model in a file, and of its weights
weight_assignment   arrays of a file for variables: all are assigned, or none
object_paths      the paths of layers in files
weight_tree       weights as Keras 3 files them, by these paths
legacy_h5         weights as Keras 2 files them, by layer
optimizer_state   the variables of an optimizer, in the order of Keras
shards            weights that Keras cut into several files
weights           `save_weights` and `load_weights`
custom_layer_graphs   calls of the user's layers, as graphs
model_state       a model made of its config, compiled, with its state
h5_model          whole models as ``.h5``
keras_zip         whole models as ``.keras``
contents          what a file of any kind holds, as plain values
models            `save_model` and `load_model`
"""
