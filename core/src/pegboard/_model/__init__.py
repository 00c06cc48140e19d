"""The nouns: tool, call, result, content, shape, policy, group, declaration, plugin record.

Data and protocols, no behaviour that needs another room. What an earlier room needs of a later one is a protocol here.
"""
