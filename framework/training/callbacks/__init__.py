"""Callbacks: what happens at the points of a training, under Keras' names."""

from .backup_and_restore import *
from .callback import Callback
from .callback_list import *
from .csv_logger import *
from .early_stopping import *
from .history import *
from .lambda_callback import *
from .learning_rate_scheduler import LearningRateScheduler
from .logs import *
from .model_checkpoint import *
from .monitor_callback import MonitorCallback
from .progbar_logger import *
from .reduce_lr_on_plateau import *
from .swap_ema_weights import *
from .tensorboard import *
from .terminate_on_nan import *
from .tqdm_callback import *
