"""Directory: access to files beneath a base directory, and to nothing outside it.

It takes paths as a model wrote them. It returns open files and folders, and replaces files with whole new ones.
"""
