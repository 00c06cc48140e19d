"""Text: viewing, searching and changing the text of files.

It takes open files and folders of `_directory`. It returns the text that a model reads, and the new content of files.
"""
