"""`python -m docgen_core.cli`: how a fleet starts its workers."""

from docgen_core.cli.app import main

main()
