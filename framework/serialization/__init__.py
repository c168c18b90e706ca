"""Objects as plain JSON and back.

registry                names of classes and functions, ours and the user's
configured              `Configured`: constructor arguments as config
constructor_arguments   arguments and defaults of constructors
object_config           objects as JSON, `get`, `serialize` and `deserialize` of a kind
shared_objects          layers that stand in several places of a model
literals                arrays, slices, bytes as JSON
load_errors             the errors of loading, which name the file
"""
