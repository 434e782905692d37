"""Errors of the rooms for profiles, and how they are told."""


class ProfileError(ValueError):
    """A source cannot be read. `hint` says what to do."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint
