"""Notifications: a webhook is told when the state of a suite changes.

The last state of each suite is a small file beside its run directories, replaced by compare and
swap, so that of two nights one announces a change.
"""

from orbax_bench_core.exports.notifications.announcing import News, State, announce
from orbax_bench_core.exports.notifications.webhook import Webhook, webhook_at

__all__ = [
    "News",
    "State",
    "Webhook",
    "announce",
    "webhook_at",
]
