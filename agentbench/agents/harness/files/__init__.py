"""Files that an agent reads and writes: stores of text files, and the providers of tools over them."""
