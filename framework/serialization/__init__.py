"""Objects as plain JSON and back, in the form of Keras configs.

The form is public: ``get_config`` of a layer with nested layers returns it. Everything
else about Keras files is defined in `keras.files`.

registry                names of classes and functions, built-in and user-defined
configured              `Configured`: constructor arguments as config
constructor_arguments   arguments and defaults of constructors
constructor_call        objects in print: ``Adam(learning_rate=0.01)``
object_config           objects as JSON, `get`, `serialize` and `deserialize` of a family
shared_layers           layers with several entries in one config
literals                arrays, slices, bytes as JSON, in Keras' form
value_codec             plain values as JSON, exactly, for states and saved functions
assets                  configs that include the assets of layers
load_errors             errors of loading, which name the file
"""
