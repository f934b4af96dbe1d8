"""The `docgen` command. Each command opens what it needs and nothing else, so that help is fast.

`app` holds the command tree and how errors become one line and an exit code; the other modules
hold the commands by what they are for. No command decides anything that a library call could.
"""
