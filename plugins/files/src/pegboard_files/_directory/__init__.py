"""Directory: what is reached beneath a base directory, and nothing outside it.

In come paths as a model wrote them; out go open files and folders, and whole new files in the place of others.
"""
