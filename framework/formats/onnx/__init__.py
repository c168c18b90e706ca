"""ONNX files: traced functions as ONNX graphs, and back.

package   the package onnx
"""
