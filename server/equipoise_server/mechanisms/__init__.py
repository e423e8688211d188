"""The named mechanisms, one file each, behind one interface."""
