"""TensorFlow's namespaces (`tw.math`, `tw.nn`, ...) of tapewright's ops."""
