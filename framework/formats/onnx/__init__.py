"""ONNX files: traced functions as ONNX graphs, and ONNX graphs as modules.

package        the package onnx
operands       tensors of the graph that is written, and plans to compute them
to_onnx        translations of ops to ONNX, a table for each family
graph_writer   the graph of a trace as ONNX nodes and constants
save           the model around it, and its file
from_onnx      translations of ONNX ops, a table for each family
load           an ONNX file as a module
"""
