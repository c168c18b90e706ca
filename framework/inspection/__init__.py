"""What is inside a file, and whether it is sound: the commands ``show`` and ``verify``.

own_kinds      what saved models and checkpoints hold
contents       what a file of any kind holds, as plain values
report         the same as a text for people
verification   whether every byte is as it should be
"""
