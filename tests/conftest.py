"""For all tests."""

import signal

# A shell's background job ignores Ctrl-C, and so does all it starts: evalkit heeds that, and tests of Ctrl-C need one.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
