"""The commands ``show`` and ``verify``: the contents of a file, and whether it is sound.

report         what a file of any kind holds, as a text for people
verification   whether every byte is as it should be
"""
