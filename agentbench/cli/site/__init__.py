"""`agentbench site`: builds static files with which notebooks run in a browser, without a server or an installation."""
