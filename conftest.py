"""A test run started in the background inherits an ignored SIGINT; some tests press Ctrl-C."""

import signal

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
