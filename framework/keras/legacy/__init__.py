"""Keras 2: functions, configs and preprocessing of its time.

Modules::

    backend         `keras.backend`: functions of ``tf.keras.backend``
    preprocessing   `keras.preprocessing`: images, sequences and texts
    configs         conversion between configs of Keras 2 and Keras 3
    functions       functions of Keras 2 between layers, as in Keras 3
    serialization   `keras.utils.legacy`: configs of Keras 2 for libraries
"""
