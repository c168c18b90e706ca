"""Target `native`: a program as machine code, through LLVM."""
