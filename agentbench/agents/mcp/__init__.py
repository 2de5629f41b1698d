"""Tools, prompts and models' requests over the Model Context Protocol."""
