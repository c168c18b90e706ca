"""Base of all layers: `Layer`, weight tracking, calls, and symbolic tensors."""
