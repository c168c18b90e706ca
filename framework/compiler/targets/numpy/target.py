"""The pipeline of the NumPy target: calls of NumPy, with the bits of eager mode."""

from ...program.passes.map_fusion import row_blocks
from ..target import CLEANUP, REWRITES, SIMPLIFICATION, Target
from .executable import Executable

TARGET = Target(
    "numpy",
    graph_passes=(*REWRITES, *CLEANUP),
    lowering=dict,
    program_passes=(*SIMPLIFICATION, row_blocks),
    executable=Executable,
)
