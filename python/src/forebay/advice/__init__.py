"""What a profile means: findings, each with the counters it rests on, its rule, and the line to add."""

from forebay.advice.advise import findings, paragraph

__all__ = ["findings", "paragraph"]
