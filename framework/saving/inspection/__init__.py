"""What is inside a file, told and verified without building anything."""
