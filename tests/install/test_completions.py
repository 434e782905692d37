"""Shells complete commands and options of `forebay`."""

import subprocess

import pytest


@pytest.fixture(scope="module")
def share(build, tmp_path_factory):
    """A `share` directory with the completions."""
    directory = tmp_path_factory.mktemp("share")
    subprocess.run([build / "bin" / "forebay", "__completions", directory], check=True)
    return directory


@pytest.mark.parametrize(
    ("words", "expected"),
    [(["sta"], {"status", "stage"}), (["run", "--no-d"], {"--no-deadline"}), (["stage", "ret"], {"retry"})],
)
def test_bash_completes_words_with_the_same_prefix(share, words, expected):
    place = share / "bash-completion" / "completions" / "forebay.bash"
    line = " ".join(f"'{word}'" for word in words)
    script = f"""source {place}
COMP_WORDS=(forebay {line}); COMP_CWORD={len(words)}
_forebay forebay '{words[-1]}' '{(["forebay", *words])[-2]}'
printf '%s\\n' "${{COMPREPLY[@]}}" """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == expected


def test_bash_does_not_complete_commands_of_other_programs(share):
    texts = [path.read_text() for path in share.rglob("*forebay*") if path.is_file()]
    assert len(texts) == 3
    hidden = ("__series", "__rank", "__carry-out")
    assert not any(name in text for name in hidden for text in texts)
