"""What is true of a run."""


def label(*told, also=(), held_out=False):
    """`told`: what a report must say; `also`: what it may say."""

    def labelled(make):
        make.told, make.also, make.held_out = frozenset(told), frozenset(also), held_out
        return make

    return labelled


def healthy(*, also=(), held_out=False):
    """Nothing slows the run that a change of its I/O would help."""
    return label(also=also, held_out=held_out)
