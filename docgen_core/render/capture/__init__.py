"""Capture conditions: what happened to a document between its printing and its files.

"clean" is the file as printed; every other condition is a picture of each page, without a text
layer, that a named device took of it. Boxes move with the pixels, by the same transform. All
randomness comes from the document's draws, and each page is worked on by one thread.

`take` is the way through; `scan`, … are the devices; `dial` scales their damage; `geometry`,
`sensor` and `texture` are what they share; `encode` makes files. What does not belong here:
printing, and which condition a document gets (its pack).
"""

from docgen_core.render.capture.take import (
    CLEAN,
    CONDITIONS,
    SUFFIXES,
    Captured,
    CapturedFile,
    CapturedPage,
    capture,
)

__all__ = ["CLEAN", "CONDITIONS", "SUFFIXES", "Captured", "CapturedFile", "CapturedPage", "capture"]
