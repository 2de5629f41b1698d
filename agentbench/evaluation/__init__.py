"""Evaluation: items to score, checks, evaluators, results, and how agents and workflows are evaluated."""
