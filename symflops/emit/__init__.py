"""emit: Program -> text. One folder per output language, templates beside them.

Every number comes from the program; templates place text and decide nothing.
Public function: :func:`symflops.emit.emit.emit`.
"""
