"""Drills of nights: a clock that is moved, and what people are told."""

import datetime
import json


def move_clock(folder, hours):
    """Lets time pass, by having all that happened be longer ago."""
    past = datetime.timedelta(hours=hours)
    keys = ("created_at", "begun", "claimed_at", "at", "began_at", "last_at")
    found = [*folder.glob("*/run.json"), *folder.glob("notified-*"), *folder.glob("*/heartbeats/*")]
    for file in found:
        content = json.loads(file.read_text())
        for key in keys:
            if key in content:
                content[key] = (datetime.datetime.fromisoformat(content[key]) - past).isoformat()
        file.write_text(json.dumps(content))


def drill(nights, make, watch, folder, webhook, capsys):
    """Makes nights, a day apart; returns the states told in each, None where nothing was.

    Args:
        nights: For each what `make` is given, None where it does not begin, and what is expected.
        make: Makes a night.
        watch: Asks in the morning whether the suite has reported.
        folder: That of the run directories.
        webhook: What is told.
        capsys: Shows the notifications.
    """
    told = []
    for number, (night, _) in enumerate(nights, start=1):
        webhook.posted.clear()
        if night is not None:
            make(**night)
        folder.mkdir(exist_ok=True)
        move_clock(folder, 6)
        watch("watch", folder, "--within", "20h", "--suite", "nightly")
        move_clock(folder, 18)
        said = [message["text"] for _, message in webhook.posted]
        with capsys.disabled():
            print(f"\nnight {number:>2}: {'; '.join(said) or '-'}", end="")
        told.append("; ".join(webhook.states) or None)
    return told
