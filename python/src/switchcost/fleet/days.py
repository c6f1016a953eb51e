"""Days on the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone

from .submission import FleetError


def day_of(option: str, text: str) -> date:
    """A day in UTC: 2026-11-01, today, yesterday, or 14d for fourteen days ago. Raises FleetError with code 2."""
    today = datetime.now(timezone.utc).date()
    if text in ("today", "yesterday"):
        return today - timedelta(text == "yesterday")
    try:
        return (
            today - timedelta(int(text[:-1]))
            if text.endswith("d") and text[:-1].isdecimal()
            else date.fromisoformat(text)
        )
    except (ValueError, OverflowError):
        said = "a day is 2026-11-01, today, yesterday or 14d (days ago)"
        raise FleetError(f"{option} {text}: {said}", 2) from None


def day_for(option: str) -> Callable[[str], date]:
    """For argparse, which says `option` itself."""

    def parse(text: str) -> date:
        try:
            return day_of(option, text)
        except FleetError as error:
            raise argparse.ArgumentTypeError(str(error).removeprefix(f"{option} ")) from None

    return parse
