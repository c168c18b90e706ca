"""Objects as plain JSON and back, in the form of Keras' configs.

The form is public, as ``get_config`` of a layer with layers inside returns it; what more a
file of Keras holds is known in `keras.files` alone.

registry                names of classes and functions, ours and the user's
configured              `Configured`: constructor arguments as config
constructor_arguments   arguments and defaults of constructors
object_config           objects as JSON, `get`, `serialize` and `deserialize` of a family
literals                arrays, slices, bytes as JSON
assets                  configs that hold what else are files of layers
load_errors             the errors of loading, which name the file
"""
