"""tapewright's file formats: modules with traced functions, and checkpoints.

saved_model   a `Module` with its functions as graphs, custom gradients included
checkpoints   the values of objects that code creates, by their paths
libraries     traced functions as machine code with a C header
onnx          traced functions as ONNX graphs, and back
"""
