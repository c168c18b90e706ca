"""The target `native`: programs compiled to machine code by LLVM."""
