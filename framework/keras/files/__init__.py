"""Read and write files of Keras (``.weights.h5``, ``.h5``, ``.keras``) and safetensors.

Modules::

    save_and_load         `save_model`, `load_model`, `save_weights`, `load_weights`
    model_file            one view of a file, independent of its layout
    weights               weights and optimizer state: layouts, and the assignment
    custom_layer_graphs   calls of custom layers, as graphs
    keras_objects         objects, and arguments of calls, as JSON: ``keras.saving``
    export                `Model.export`: an ONNX file
    file_editor           `KerasFileEditor`: edit the weights of a file as a dict
    functional_config     layers and the calls between them
    operations            operations between layers: to Keras' classes, and back
    assets                files of layers, such as vocabularies
    class_names           Keras' names of classes; configs without default arguments
    limits                a walk of configs; limits of a model in a file
"""
