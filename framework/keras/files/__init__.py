"""Read and write files of Keras (``.weights.h5``, ``.h5``, ``.keras``) and safetensors.

Modules::

    save_and_load         `save_model`, `load_model`, `save_weights`, `load_weights`
    model_file            one view of a file, independent of its layout
    weights_by_path       weights of Keras 3: groups that follow the objects
    weights_by_layer      weights of Keras 2: a list of layers
    weights_by_name       weights in files of safetensors, under their names
    torch_names           weight names of a model mapped to PyTorch's
    torch_layouts         layouts of PyTorch's weights, by class of the layer
    weight_assignment     arrays of a file for variables: all are assigned, or none
    optimizer_state       the variables of an optimizer, in the order of Keras
    shards                weights split into several files
    custom_layer_graphs   calls of custom layers, as graphs
    keras_objects         objects, and arguments of calls, as JSON: ``keras.saving``
    export                `Model.export`: an ONNX file
    file_editor           `KerasFileEditor`: edit the weights of a file as a dict
    functional_config     layers and the calls between them
    operations            operations between layers: to Keras' classes, and back
    assets                files of layers, such as vocabularies
    class_names           Keras' names of classes; configs without default arguments
    keras2_configs        conversion between configs of Keras 2 and Keras 3
    keras2_functions      functions of Keras 2 between layers, as in Keras 3
    limits                a walk of configs; limits of a model in a file
"""
