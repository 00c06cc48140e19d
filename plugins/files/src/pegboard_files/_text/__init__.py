"""Text: viewing, searching and changing what stands in files.

In come open files and folders of `_directory`; out goes what a model reads of them, and what is written instead.
"""
