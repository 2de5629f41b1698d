"""Skills: instructions, resources and scripts that an agent loads when it needs them."""
