"""The CPU and GPUs of this machine, and the array modules and libraries for them."""
