"""What a profile means: findings, each with the counters it rests on, its rule, and the line to add."""
