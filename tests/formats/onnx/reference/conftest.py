"""The scripts here import PyTorch and Keras, which tests do not need."""

collect_ignore_glob = ["record_*.py"]
