"""Compile Python functions to machine code, or to calls of NumPy.

Each folder builds on the folders above it:

tracing        Python calls become a `Graph` of op nodes; its interpreter, VJPs,
verifier
passes         a graph becomes a smaller one of the same meaning
program        a graph becomes a `Program` of array instructions; its passes, its
verifier
loops          groups of instructions become nests of loops, for machine code
targets        lists of passes; a program becomes a callable
pipeline       the steps from a graph to its executable, for the current target
inspection     graphs and executables as text, their costs and times
control_flow   branches, loops and host calls: nodes with regions
autograph      Python control flow becomes control-flow nodes
function       `tw.function`: arguments, the trace that serves them, calls
"""

from tapewright.core import config
from tapewright.core.interpreters import load_conversion_later

# Passes, lowering and target are loaded when the first function is compiled.
config.load_pipeline_later("tapewright.compiler.pipeline")
load_conversion_later("tapewright.compiler.autograph.conversion")
