"""For tests that go on after a failure: each check is told as it is made."""

FAILED = []


def check(good, what):
    print(("ok      " if good else "FAILED  ") + what, flush=True)
    if not good:
        FAILED.append(what)


def exit_status():
    """The exit status of the test."""
    return 1 if FAILED else 0
