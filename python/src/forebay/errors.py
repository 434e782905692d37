"""What every error that a user meets has: what failed, on what, and what to do."""


class ForebayError(ValueError):
    """Printed as `error: message`, with `hint: hint` on a line of its own. `hint` says what to do."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint
