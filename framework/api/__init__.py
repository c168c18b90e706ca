"""TensorFlow's namespaces (`tw.math`, `tw.nn`, ...) over the op families."""
