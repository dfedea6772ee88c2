"""Why a program ended, from what it printed; exceptions that must not end a node."""

import pytest

from musls_control.child_processes import CallbackErrors, ending, last_words, plain, why_ended

OURS = """\
[INFO] [1795804559.47] [offboard]: drone_1: idle
musls: error: parameter heartbeat_s: 2.5 is above 0.4
[WARN] [1795804559.48] [rcl.logging_rosout]: Publisher already registered
\x1b[0m
"""
TRACEBACK = """\
Traceback (most recent call last):
  File "recorder.py", line 1, in <module>
OSError: [Errno 28] No space left on device
[INFO] [1795804559.48] [recorder]: ending
"""
AGENT = "\x1b[32m[12] info\x1b[0m running\r\n\x1b[31;1m[13] error | port in use\x1b[m\n[14] info\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (OURS, "parameter heartbeat_s: 2.5 is above 0.4"),
        (TRACEBACK, "OSError: [Errno 28] No space left on device"),
        (AGENT, "[13] error | port in use"),
        ("one\n\x1b]0;title\x07two  words\x1b[K\n\n", "two words"),
        ("\x1b[0m\n", ""),
    ],
)
def test_the_line_that_says_why_is_found_without_codes_of_terminals(text, words):
    assert last_words(text) == words


def test_an_end_is_told_though_nothing_was_printed():
    assert (ending(2), ending(-9), ending(-200)) == (
        "ended with code 2", "was ended by SIGKILL", "was ended by signal 200"
    )  # fmt: skip
    assert why_ended(-11, "") == "was ended by SIGSEGV, without a word"
    assert why_ended(1, TRACEBACK).endswith("code 1: OSError: [Errno 28] No space left on device")
    assert plain("\x1b[1;31mred\x1b[0m") == "red"


def test_exceptions_are_told_once_and_counted_by_their_place():
    errors = CallbackErrors()

    def fails(value):
        try:
            raise TypeError(f"no {value}")
        except TypeError as error:
            return errors.note(error)

    first = fails(1)
    assert first.startswith("TypeError: no 1 (test_last_words.py:")
    assert fails(2) == ""
    try:
        raise ValueError("elsewhere")
    except ValueError as error:
        assert "elsewhere" in errors.note(error)
    assert sorted(errors.counts.values()) == [1, 2]
