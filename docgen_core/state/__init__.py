"""State stores: the coordination contract, chosen by URI scheme."""
