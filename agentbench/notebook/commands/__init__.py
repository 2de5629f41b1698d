"""The magics and the doctor."""
