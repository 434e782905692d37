"""What is true of a run."""


def label(*expected, also=(), held_out=False):
    """`expected`: what a report must say; `also`: what it may say."""

    def labelled(make):
        make.expected, make.also, make.held_out = frozenset(expected), frozenset(also), held_out
        return make

    return labelled


def healthy(*, also=(), held_out=False):
    """Nothing slows the run that a change of its I/O would help."""
    return label(also=also, held_out=held_out)
