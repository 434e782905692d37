"""What is run next, and the verdict: pure functions of the plan and the runs so far."""
