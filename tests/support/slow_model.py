"""A parallel file system so slow that staging can be met half way."""

MODEL = """
name = "slow"
scale = "invented for tests"
[targets]
count = { value = 1, source = "test" }
latency = { value = "1 ms", source = "test" }
bandwidth = { value = "20 MB/s", source = "test" }
switch_penalty = { value = "1 us", source = "test" }
[client]
bandwidth = { value = "20 MB/s", source = "test" }
[metadata]
operation = { value = "10 us", source = "test" }
per_stripe = { value = "1 us", source = "test" }
[layout]
stripe_count = { value = 1, source = "test" }
stripe_size = { value = "1 MiB", source = "test" }
"""
