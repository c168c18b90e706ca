"""Weights and optimizer state in files: layouts, and the assignment to variables.

Modules::

    weights_by_path     weights of Keras 3: groups that follow the objects
    weights_by_layer    weights of Keras 2: a list of layers
    weights_by_name     weights in files of safetensors, under their names
    torch_names         weight names of a model mapped to PyTorch's
    torch_layouts       layouts of PyTorch's weights, by class of the layer
    weight_assignment   arrays of a file for variables: all are assigned, or none
    optimizer_state     the variables of an optimizer, in the order of Keras
    shards              weights split into several files
"""
