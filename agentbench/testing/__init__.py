"""For the tests of people who build on agentbench: suites that their own parts must pass. Loads no test framework."""
