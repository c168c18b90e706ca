"""`tw.image`: resize, crop, rotate, color and compare images, as ``tf.image``."""

from tapewright.io.images import *
from tapewright.ops.image.adjusting import *
from tapewright.ops.image.box_sampling import *
from tapewright.ops.image.boxes import *
from tapewright.ops.image.color import *
from tapewright.ops.image.cropping import *
from tapewright.ops.image.edges import *
from tapewright.ops.image.flipping import *
from tapewright.ops.image.pixels import *
from tapewright.ops.image.quality import *
from tapewright.ops.image.random_images import *
from tapewright.ops.image.resizing import *
from tapewright.ops.image.suppression import *
