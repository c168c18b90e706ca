"""`keras.callbacks`: objects that `fit` calls between steps, under Keras' names."""

from .backup_and_restore import *
from .callback import Callback, LambdaCallback
from .callback_list import *
from .early_stopping import *
from .history import *
from .learning_rate import LearningRateScheduler, ReduceLROnPlateau
from .model_checkpoint import *
from .progress_bars import *
from .remote_monitor import *
from .swap_ema_weights import *
from .tensorboard import *
