"""The base of all layers: `Layer`, its weights, its calls, symbolic tensors between layers."""
