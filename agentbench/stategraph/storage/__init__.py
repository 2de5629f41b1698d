"""Storages for threads under the names that other libraries give them."""
